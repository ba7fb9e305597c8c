"""Losses that were not measured follow from those that were, and are stamped as what they are."""

import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.common import Report
from benchmarks.prediction import on_this_machine
from benchmarks.simulated_grids import Grid, measured
from castmates.analysis.effects.effects import LATE
from castmates.analysis.prediction.pairs import (
    ANTAGONIST,
    FEWEST,
    LEAD,
    SHAPES,
    Errors,
    LeftOut,
    PairModel,
    Seen,
    best,
    seen_in,
)
from castmates.analysis.prediction.predicted import Combined, PredictedLosses, combined_loss
from castmates.analysis.prediction.table import (
    CHECK,
    GRID,
    PROFILE,
    SEVERAL,
    both_roles,
    equivalent,
    estimate_predictions,
    quality,
)
from castmates.errors import CastmatesError
from castmates.report.results import Results
from castmates.report.text.prediction import quality_words, role_words
from castmates.results.columns.study import EFFECTS
from castmates.results.folder import StudyFolder
from castmates.results.tables import write_table
from castmates.study.dials import BANDWIDTH, CAPACITY, Dial, dials_of, settings_of
from castmates.study.modelled import WorkingSet, WorkloadModel
from castmates.study.placement_keys import PredictKeys, design
from castmates.study.spec import UNMANAGED, Cohort, Launch, Member, NodeClass, Plan, Prediction

NAMES = [f"p{number:02d}" for number in range(6)]
SENSITIVE = [0.02, 0.1, 0.3, 0.5, 0.8, 1.0]
PRESSING = [0.4, 0.1, 0.02, 0.3, 0.2, 0.05]


class Known(Grid):
    """A grid whose losses are a sensitivity times a pressure; several pressures add up to extra time."""

    def truth(self, mix):
        return tuple(
            combined_loss(
                [SENSITIVE[int(one[1:])] * PRESSING[int(other[1:])] for other in mix[:place] + mix[place + 1 :]]
            )
            for place, one in enumerate(mix)
        )


KNOWN = Known({}, NAMES)


def effects_of(mixes, both=True, seed=1):
    table = measured(KNOWN, mixes, np.random.default_rng(seed), both)
    return table.assign(platform="modelled", machine="")


def off(losses, cell):
    job, beside = cell
    return abs(losses.of(job, beside).pct + 100 * math.expm1(-KNOWN.truth((job, *beside))[0]))


def test_pairs_that_were_never_measured_are_predicted_from_forty_per_cent():
    drawn = design(PredictKeys(leads=NAMES, measure=0.4), 3)
    losses = PredictedLosses.from_effects(effects_of(drawn.fitted))
    assert len(drawn.fitted) == 14
    cells = [(lead, (name,)) for lead in NAMES for name in NAMES]
    by_source = {source: [c for c in cells if losses.of(*c).source == source] for source in ("measured", "predicted")}
    assert len(by_source["measured"]) == 28  # every mix shows what both of its programs lose
    assert np.mean([off(losses, cell) for cell in by_source["predicted"]]) < 1.0
    for cell in by_source["predicted"]:
        loss = losses.of(*cell)
        assert loss.low < loss.pct < loss.high


def test_what_was_measured_is_never_replaced_by_a_prediction():
    losses = PredictedLosses.from_effects(effects_of([(a, b) for a in NAMES for b in NAMES], both=False))
    own = best(seen_in(effects_of([(a, b) for a in NAMES for b in NAMES], both=False)))
    loss = losses.of("p04", ["p03"])
    assert (loss.source, loss.pct) == ("measured", own["p04", ("p03",)].pct)
    assert losses.without(("p04", ("p03",))).log != pytest.approx(own["p04", ("p03",)].log, abs=1e-9)


def test_a_mix_that_is_left_out_leaves_no_trace_in_its_own_prediction():
    """A wild measurement must not be predicted from itself, nor from the other role in the same mix."""
    mixes = design(PredictKeys(leads=NAMES, measure=0.5), 3).fitted
    wild = effects_of(mixes)
    here = wild["mix"] == "+".join(mixes[0])
    wild.loc[here, ["slowdown", "slowdown_low", "slowdown_high"]] *= 3.0
    before, after = (
        PredictedLosses.from_effects(table).without((mixes[0][0], (mixes[0][1],)))
        for table in (effects_of(mixes), wild)
    )
    assert after.log == pytest.approx(before.log, abs=0.06)  # another shape may be chosen; 3 times as slow is 1.1


def test_the_lead_of_a_mix_counts_before_its_antagonist():
    both = effects_of([("p00", "p01"), ("p01", "p00")])
    found = best(seen_in(both))
    assert found["p00", ("p01",)].how == LEAD
    assert best(seen_in(both[both["mix"] == "p01+p00"]))["p00", ("p01",)].how == ANTAGONIST


def test_mixes_at_a_given_distance_and_under_partitions_teach_nothing():
    table = effects_of([("p00", "p01")])
    near = table.assign(mix="p00+p01:smt", antagonists="p01:smt")
    masked = table.assign(partition="split-6")
    assert not seen_in(pd.concat([near, masked]))
    assert PredictedLosses.from_effects(table).of("p00", ["p01"], ways=4) is None


def test_too_few_pairs_predict_nothing():
    losses = PredictedLosses.from_effects(effects_of([("p00", "p01"), ("p02", "p03")]))
    assert losses.model is None
    assert losses.of("p00", ["p03"]) is None
    assert losses.of("p00", ["p01"]).source == "measured"
    assert losses.of("nobody", []).pct == 0.0


def test_what_a_dial_loses_itself_shows_nothing_of_others():
    mixes = [*design(PredictKeys(leads=NAMES[:5], measure=0.5), 3).fitted, *((name, "p05") for name in NAMES[:5])]
    table = effects_of(mixes)
    wild = table.copy()
    wild.loc[wild["member"] == "p05@1", ["slowdown", "slowdown_low", "slowdown_high"]] *= 9.0
    known = [PredictedLosses.from_effects(each, dials=["p05"]) for each in (table, wild)]
    assert "p05" in known[0].model.antagonists
    assert "p05" not in known[0].model.jobs
    np.testing.assert_allclose(known[0].model.logs, known[1].model.logs)
    assert known[0].of("p05", ["p00"]).source == "measured"


def test_latencies_of_services_teach_nothing():
    table = effects_of(design(PredictKeys(leads=NAMES, measure=0.5), 3).fitted)
    service = table["member"].str.startswith("p03@")
    late = PredictedLosses.from_effects(table.assign(metric=table["metric"].mask(service, LATE)))
    assert late.of("p03", ["p00"]) is None
    assert late.of("p00", ["p03"]) is not None


def test_intervals_of_leads_are_made_of_the_errors_of_leads_where_there_are_enough():
    left_out = {("p00", (f"x{n}",)): LeftOut(0.1, 0.1 + 0.001 * n) for n in range(20)}
    wide = {("reporter", (f"x{n}",)): LeftOut(0.1, 0.4) for n in range(20)}
    models = [
        PairModel([], [], SHAPES[0], np.zeros((0, 0)), {**own, **wide}, ["p00"])
        for own in (left_out, dict(list(left_out.items())[:10]))
    ]
    assert [model.are_of_leads for model in models] == [True, False]
    assert models[0].errors.half_width(0.1) < 0.021
    assert models[1].errors.half_width(0.1) == pytest.approx(0.3)


def seen(log, half=0.005):
    ends = [100 * (1 - math.exp(-each)) for each in (log, log - half, log + half)]
    return Seen("reporter", ("x",), log, half / 2.8, *ends, 5, LEAD)


def test_a_pressure_is_the_setting_of_a_dial_that_costs_as_much():
    dials = {"a": Dial(CAPACITY, 2.0), "b": Dial(CAPACITY, 6.0), "c": Dial(CAPACITY, 10.0), "d": Dial(BANDWIDTH, 3.0)}
    beside = {"a": seen(0.1), "b": seen(0.3), "c": seen(0.3), "d": seen(0.2)}

    def setting(log, kind=CAPACITY, known=beside):
        return equivalent(seen(log), known, dials, kind)

    assert setting(0.15) == pytest.approx(3.0)
    assert math.isnan(setting(0.05))  # below the least setting
    assert math.isnan(setting(0.35))  # above the largest
    assert math.isnan(setting(0.2, BANDWIDTH))  # one setting
    assert math.isnan(equivalent(None, beside, dials, CAPACITY))
    flat = {**beside, "a": seen(0.298)}  # within its own error the reporter feels no difference
    assert math.isnan(setting(0.299, known=flat))
    falling = {"a": seen(0.1), "b": seen(0.32), "c": seen(0.3)}
    assert 5.0 < setting(0.3, known=falling) < 6.0  # made monotone: b and c are 0.31


def test_intervals_that_reporters_errors_make_are_named_on_the_page():
    keys = PredictKeys(leads=NAMES[:4], bubbles=["p05"], reporters=["p04"], measure=0.8)
    table = estimate_predictions(plan_of(keys, design(keys, 7)), effects_of(design(keys, 7).fitted))["predictions"]
    wide = table.assign(loss_low=-9.0, loss_high=9.0)
    assert any("may be far too wide" in sentence for sentence in quality_words(wide))
    assert not any("may be far too wide" in sentence for sentence in quality_words(wide.assign(loss_low=math.nan)))
    of_leads = pd.concat([wide, *(wide[wide["error"].notna()] for _ in range(20))])
    assert not any("may be far too wide" in sentence for sentence in quality_words(of_leads))


def member(model=None, command=(), name="dial"):
    about = {"role": "antagonist", "cpus": (1,), "nodes": (), "content": "", "progress": "heartbeat", "unit": "visit"}
    return Member(
        name=f"{name}@1", workload=name, command=command, environment="native" if command else None,
        environment_key=None, variables={}, ready_within=60.0, model=model, **about,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (member(command=("capacity", "--bytes", str(6 << 20), "--rate", "8GB/s")), Dial(CAPACITY, 6.0)),
        (member(command=("bandwidth", "--bytes", "64M", "--rate", "2GB/s")), Dial(BANDWIDTH, 2.0)),
        (member(command=("bandwidth", "--bytes", "64M", "--rate", "50%")), None),
        (member(command=("stream",)), None),
        (
            member(WorkloadModel(compute=1e-6, accesses=9, reuse=[WorkingSet(size="3 MiB", share=1.0)])),
            Dial(CAPACITY, 3.0),
        ),
        (member(WorkloadModel(compute=3.2e-5, accesses=1000)), Dial(BANDWIDTH, 2.0)),
        (member(WorkloadModel(compute=1.0)), None),
    ],
)
def test_what_a_dial_is_set_to_follows_from_its_command_or_its_model(one, expected):
    cohort = Cohort(id="c", protocol=8, native_key="", members=(one,), mixes=(), scenes=())
    launch = Launch.model_construct(cohort=cohort)
    plan = Plan.model_construct(launches=(launch,), prediction=None)
    found = settings_of(plan, ["dial"]).get("dial")
    assert found == (None if expected is None else Dial(expected.kind, pytest.approx(expected.amount)))
    assert dials_of(plan) == ({"dial"} if "--rate" in one.command else set())


def test_what_several_do_together_follows_from_each_of_them():
    drawn = design(PredictKeys(leads=NAMES, measure=0.6), 3)
    losses = PredictedLosses.from_effects(effects_of(drawn.fitted))
    cell = "p05", ("p00", "p03")
    assert losses.of(*cell).source == "predicted"
    assert math.isnan(losses.of(*cell).low)  # nothing shows how far off these are
    assert off(losses, cell) < 3.0


def test_losses_that_hinder_each_other_less_are_seen_where_enough_was_measured():
    """Two that take the same cache cost hardly more than the worse of them."""
    pairs = [[0.2, 0.2 + 0.01 * n] for n in range(12)]
    shown = {(f"p{n:02d}", ("a", "b")): (logs, combined_loss(logs, 3.0)) for n, logs in enumerate(pairs)}
    assert Combined.of(shown).power == 3.0
    assert Combined.of(dict(list(shown.items())[:3])).power == 1.0
    shown["p11", ("a", "b")] = pairs[11], 9.0  # alone it would have another power chosen
    left_out = Combined.of(shown).left_out["p11", ("a", "b")]
    assert left_out == pytest.approx(combined_loss(pairs[11], 3.0))


def test_an_interval_needs_nineteen_errors_and_holds_the_next():
    rng = np.random.default_rng(5)
    assert FEWEST == 19
    sizes = rng.uniform(0.05, 0.5, 18)
    assert math.isnan(Errors.of(sizes, sizes).half_width(0.1))
    held = []
    for _ in range(400):
        predicted = rng.uniform(0.05, 0.5, 20)
        measured_ = predicted + rng.normal(0, 0.05, 20) * (0.1 + predicted)
        errors = Errors.of(predicted[:-1], measured_[:-1])
        held.append(abs(measured_[-1] - predicted[-1]) <= errors.half_width(predicted[-1]))
    assert 0.91 < np.mean(held) < 0.985


@pytest.mark.parametrize("beside", [None, [f"x{number}" for number in range(6)]])
def test_a_design_has_every_lead_and_antagonist_and_only_ever_grows(beside):
    before = ()
    for share in (0.25, 0.4, 0.7, 1.0):
        keys = PredictKeys(leads=NAMES, antagonists=beside, measure=share)
        drawn = design(keys, 7)
        assert len(drawn.pairs) == int(share * 36 + 1e-9)
        assert drawn.pairs[: len(before)] == before
        before = drawn.pairs
        members = {name for pair in drawn.pairs for name in pair}
        assert members == {*NAMES, *(beside or [])}
    assert design(PredictKeys(leads=NAMES, measure=0.4), 7) != design(PredictKeys(leads=NAMES, measure=0.4), 8)


def test_profiles_count_as_measured_and_fresh_pairs_are_apart():
    keys = PredictKeys(leads=NAMES, bubbles=["dial"], reporters=["p05"], measure=0.5, check=4)
    drawn = design(keys, 7)
    assert len(drawn.profiles) == 12
    assert len(drawn.fitted) == 18
    assert len(drawn.check) == 4
    assert not {*drawn.check} & {*drawn.fitted}


def shown_by(pairs):
    return {cell for lead, name in pairs for cell in ((lead, name), (name, lead))}


def test_fresh_pairs_are_a_random_sample_of_the_cells_that_nothing_shows():
    """A cell beside another program is as likely as one of a program beside itself; no fitted mix shows it."""
    seeds, drawn, there = range(400), {True: 0, False: 0}, {True: 0, False: 0}
    for seed in seeds:
        found = design(PredictKeys(leads=NAMES, measure=0.4, check=3), seed)
        unknown = {(a, b) for a in NAMES for b in NAMES} - shown_by(found.fitted)
        fresh = shown_by(found.check)
        assert fresh <= unknown
        for itself in (True, False):
            drawn[itself] += sum((a == b) is itself for a, b in fresh)
            there[itself] += sum((a == b) is itself for a, b in unknown)
    assert drawn[True] / there[True] == pytest.approx(drawn[False] / there[False], abs=0.06)


def test_fresh_pairs_end_with_what_is_unknown_and_stay_when_more_is_measured():
    every = design(PredictKeys(leads=NAMES, measure=0.4, check=30), 7)
    assert shown_by(every.check) | shown_by(every.fitted) == {(a, b) for a in NAMES for b in NAMES}
    assert not shown_by(every.check) & shown_by(every.fitted)
    more = design(PredictKeys(leads=NAMES, measure=0.5, check=30), 7)
    assert {*every.check} <= {*more.check, *more.fitted}


def plan_of(keys, drawn):
    grid_ = Prediction(
        leads=tuple(keys.leads),
        antagonists=tuple(keys.columns),
        bubbles=tuple(keys.bubbles),
        reporters=tuple(keys.reporters),
        profiles=len(drawn.profiles),
        pairs=len(drawn.pairs),
        check=drawn.check,
    )
    return Plan(study="example", titles={}, mixes=(), controls=(), launches=(), prediction=grid_)


def test_fresh_pairs_are_compared_and_not_fitted():
    keys = PredictKeys(leads=NAMES, measure=0.5, check=3)
    drawn = design(keys, 7)
    table = effects_of([*drawn.fitted, *drawn.check])
    fresh = table["mix"].isin(["+".join(pair) for pair in drawn.check])
    wild = table.copy()
    wild.loc[fresh, ["slowdown", "slowdown_low", "slowdown_high"]] *= 3.0
    plan = plan_of(keys, drawn)
    plain, moved = (estimate_predictions(plan, each)["predictions"] for each in (table, wild))
    own = plain["part"] == CHECK
    assert own.sum() >= 3
    assert plain.loc[own, "without_pct"].tolist() == pytest.approx(moved.loc[own, "without_pct"].tolist())
    assert quality(plain, CHECK).mean < 2.0
    assert (plain.loc[plain["source"] == "predicted", "launches"] == 0).all()
    assert list(plain.columns)[-1] == "source"


def test_two_of_a_program_beside_another_are_no_fresh_pair():
    keys = PredictKeys(leads=NAMES, measure=0.5, check=30)
    drawn = design(keys, 7)
    lead, name = next(pair for pair in drawn.check if pair[0] == pair[1])
    table = effects_of([*drawn.fitted, *drawn.check, (lead, name, name)])
    rows = estimate_predictions(plan_of(keys, drawn), table)["predictions"].set_index(["lead", "antagonists"])
    assert rows.loc[(lead, name), "part"] == CHECK
    assert rows.loc[(lead, f"{name}+{name}"), "part"] == SEVERAL


def test_tables_have_the_whole_grid_and_the_profiles():
    keys = PredictKeys(leads=NAMES[:5], bubbles=["p05"], reporters=["p04"], measure=0.6)
    drawn = design(keys, 7)
    several = [("p00", "p01", "p02")]
    tables = estimate_predictions(plan_of(keys, drawn), effects_of([*drawn.fitted, *several]))
    cells, profiles = tables["predictions"], tables["profiles"]
    assert (cells["part"] == GRID).sum() == 25
    assert (cells.loc[cells["part"] == GRID, "source"] != "").all()
    assert {*cells["part"]} == {GRID, PROFILE, SEVERAL}
    assert (cells["partition"] == UNMANAGED).all()
    assert len(profiles) == 5 + 6
    assert {*profiles["profile"]} == {"sensitivity", "pressure"}
    nothing = estimate_predictions(Plan(study="", titles={}, mixes=(), controls=(), launches=()), effects_of(several))
    assert all(table.empty for table in nothing.values())


def results(launches):
    """Results of a grid of which a part was measured, in so many launches."""
    keys = PredictKeys(leads=NAMES, measure=0.4, check=4)
    drawn = design(keys, 1)
    plan, effects = plan_of(keys, drawn), effects_of([*drawn.fitted, *drawn.check]).assign(launches=launches)
    return Results(name="example", plan=plan, **estimate_predictions(plan, effects))


def test_each_class_of_nodes_and_each_processor_has_its_own_fit():
    keys = PredictKeys(leads=NAMES, measure=0.5)
    drawn = design(keys, 7)
    old = effects_of(drawn.fitted).assign(machine="old")
    old = old.assign(lead=old["lead"] + "~old", mix=old["lead"] + "~old+" + old["antagonists"])
    faster = {name: old[name] ** 0.5 for name in ("slowdown", "slowdown_low", "slowdown_high")}
    new = old.assign(machine="new", lead=old["lead"].str.replace("~old", "~new"), **faster)
    classes = tuple(NodeClass(name=name, capture="", facts=None) for name in ("old", "new"))
    plan = plan_of(keys, drawn).model_copy(update={"machines": classes})
    table, alone = (estimate_predictions(plan, each)["predictions"] for each in (pd.concat([old, new]), old))
    pd.testing.assert_frame_equal(table[table["machine"] == "old"].reset_index(drop=True), alone)
    assert {*table.loc[table["machine"] == "new", "lead"]} == {f"{name}~new" for name in NAMES}


def test_the_benchmark_hides_a_part_of_a_measured_grid(tmp_path):
    table = effects_of([(a, b) for a in NAMES for b in [*NAMES]], both=True)
    table = table.assign(**{name: pd.NA for name in EFFECTS if name not in table})
    for name, kind in EFFECTS.items():
        table[name] = table[name].fillna({"str": "", "bool": False, "int64": 0}.get(kind, np.nan)).astype(kind)
    folder = StudyFolder(tmp_path / "grid")
    folder.tables.mkdir(parents=True)
    write_table(table[list(EFFECTS)], folder.tables / "effects")
    report = Report("Predicted losses", "prediction")
    on_this_machine(report, folder.path, designs=3)
    found = report.run().findings
    assert len(found) == 2
    assert all(0 < each.value < 3.0 for each in found)
    write_table(table.loc[table["mix"] != "p00+p01", list(EFFECTS)], folder.tables / "effects")
    with pytest.raises(CastmatesError, match="the grid is not whole: p00 beside p01"):
        on_this_machine(report, folder.path, designs=3)


def test_losses_in_both_roles_are_compared():
    table = effects_of([(lead, name) for lead in NAMES[:3] for name in NAMES[:3]])
    alike = both_roles(table)
    assert alike.count == 9
    assert abs(alike.mean) < 1.5
    less = table.assign(loss_pct=table["loss_pct"] - 5 * (table["role"] == "antagonist"))
    assert both_roles(less).mean == pytest.approx(alike.mean + 5)
    (said,) = role_words(less)
    assert said.startswith(f"9 losses were measured in both roles: as lead they are {alike.mean + 5:.1f} points more ")
    assert list(role_words(effects_of([("p0", "p1")]))) == []
