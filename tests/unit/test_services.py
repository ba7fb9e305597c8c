"""Open-loop services: which requests count where, quantiles with some unanswered, loads that keep a limit, words."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.effects.pooling import pooled
from castmates.analysis.explanations.services import KEEPS_UP, _names, latencies, loads, services, without_saturated
from castmates.analysis.statistics.censored import quantile
from castmates.errors import CastmatesError
from castmates.report.answer.headline import below, headline
from castmates.report.answer.pairs import pairs
from castmates.report.text import services as words
from castmates.results.columns.services import SERVICES
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from castmates.results.tables import tables_of
from castmates.runner.processes.member_log import RequestLog
from castmates.runner.rounds.requests import Recorded
from castmates.study.catalogue import check_latency, gather_catalogue
from castmates.study.model import Study, Workload
from castmates.study.partition_keys import RecommendKeys
from castmates.study.scenes import load_of, same_service
from castmates.workloads import identity, request_file
from tests.unit import makers, windows_maker
from tests.unit.snapshots import assert_as_before, refusal
from tests.unit.test_services_coverage import windows_of as queues_of
from tests.unit.windows_maker import cohort, mix

S = 10**9


def plan_of(loads_of=(1000, 2000), launches=4):
    """Services of these loads beside stream."""

    def serving(made, load):
        lead = made.members[0].model_copy(
            update={
                "requests": True,
                "command": ("openloop", "--server", "redis", "--load", str(load)),
                "unit": "request",
            }
        )
        return made.model_copy(update={"members": (lead, *made.members[1:])})

    made = [serving(cohort(f"c{load}", mix(f"redis-{load}@0", "stream@1")), load) for load in loads_of]
    return windows_maker.plan(made, launches)


def windows_of(plan, p99, answered=lambda *_: 1.0):
    """Windows in which a lead has this p99 in seconds, and answers this share of its load."""
    rows = windows_maker.written(plan, lambda *_: 1.0)
    lead = rows["role"] == "lead"
    load = rows["member"].str.extract(r"redis-(\d+)")[0].astype(float)
    of = [[launch, scene, member] for launch, scene, member in rows[["launch", "scene", "member"]].to_numpy()]
    value = pd.Series([p99(*each) for each in of]).where(lead)
    share = pd.Series([answered(*each) for each in of])
    rows = rows.assign(
        requests=load * 1.0, offered=load, answered=load * share, unanswered=(1 - share).where(lead),
        p50_s=value / 4, p95_s=value / 2, p99_s=value, unit="request",
    )  # fmt: skip
    return rows.assign(rate=(1 / value).where(lead, rows["rate"]))


# Quantiles


def test_without_unanswered_requests_it_is_the_usual_quantile():
    times = np.arange(1.0, 101)
    assert [quantile(times, np.zeros(0), share).value for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert math.isnan(quantile(np.zeros(0), np.zeros(0), 0.5).value)


def test_it_is_kaplan_and_meiers():
    """Remission of leukaemia (Freireich 1963): the median is 23 weeks, and the upper quartile is not known."""
    ended = np.array([6, 6, 6, 7, 10, 13, 16, 22, 23.0])
    cut = np.array([6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35.0])
    assert quantile(ended, cut, 0.5).value == 23
    assert quantile(ended, cut, 0.25).value == 13
    last = quantile(ended, cut, 0.75)
    assert (last.value, last.is_bound) == (35, True)


def test_who_is_not_answered_is_not_left_out():
    """To leave them out would make quantiles too small: 20,000 latencies, looked at for a random time."""
    rng = np.random.default_rng(3)
    took, looked = rng.exponential(1.0, 20_000), rng.uniform(0, 8.0, 20_000)
    seen = took <= looked
    true = -math.log(0.05)
    assert quantile(took[seen], looked[~seen], 0.95).value == pytest.approx(true, rel=0.05)
    assert np.quantile(took[seen], 0.95) < 0.9 * true


# Which requests count where


def test_a_request_belongs_to_the_slice_in_which_it_was_due():
    due, sent, answered = [10, 19, 20, 29, 30], [10, 20, 21, 0, 30], [15, 22, 35, 0, 31]
    records = np.array([due, sent, answered], dtype=np.uint64).T * S
    found = Recorded(records[::-1]).within([(15 * S, 30 * S, 32 * S)])
    assert found.due.tolist() == [19 * S, 20 * S, 29 * S]
    assert found.took.tolist() == [3, 12, 3]  # the second was looked at until 32, and so was the third, never sent
    assert found.is_answered.tolist() == [True, False, False]
    assert (found.seconds, found.answers) == (15, 2)  # an answer to what was due before counts for the rate
    assert found.columns["offered"] == pytest.approx(3 / 15)
    assert found.columns["unanswered"] == pytest.approx(2 / 3)
    assert Recorded(records).within([]).columns == {}


def test_what_cannot_be_a_request_is_counted_as_lost(tmp_path, monkeypatch):
    """An answer that came an hour later is one: the service stood frozen in other scenes meanwhile."""
    monkeypatch.setattr("time.monotonic_ns", lambda: 4000 * S)
    log = RequestLog.create(tmp_path / "requests")
    written = np.array([[1, 2, 3], [5, 4, 6], [1, 0, 9], [1, 2, 0], [1, 0, 0], [1, 2, 2**63]], dtype=np.uint64)
    late = np.array([[1, 2, 3600 * S], [4001 * S, 0, 0]], dtype=np.uint64)
    log._parts.append(np.concatenate([written, late]).tobytes())
    for _ in range(2):  # what is lost is not counted twice
        assert log.records().tolist() == [[1, 2, 3], [1, 2, 0], [1, 0, 0], [1, 2, 3600 * S]]
        assert log.about() == {"records": 0, "lost": 4}


def test_a_file_that_was_cut_is_no_longer_touched(tmp_path):
    log = RequestLog.create(tmp_path / "requests")
    log.scene_ends(5)
    with (tmp_path / "requests").open("r+b") as file:
        file.seek(32)
        assert file.read(16) == (1).to_bytes(8, "little") + (5).to_bytes(8, "little")
        file.truncate(100)
    log.read()
    log.scene_begins()
    assert log.about()["trouble"] == "the requests file was removed, replaced or cut"


def test_a_ring_that_was_overrun_says_how_much_is_lost(tmp_path):
    request_file.create(tmp_path / "r", capacity=8)
    ring = request_file.Runners(tmp_path / "r", capacity=8)
    for number in range(20):
        at = 8 + 3 * (number % 8)
        ring._words[at], ring._words[at + 1], ring._words[at + 2] = number, number, number
        ring._words[request_file.HEAD_AT] = number + 1
    chunk = ring.read(5)
    assert (chunk.head, chunk.lost, len(chunk.data)) == (20, 8, 7 * request_file.RECORD)
    assert np.frombuffer(chunk.data, dtype=np.uint64)[::3].tolist() == list(range(13, 20))


# Tables


def test_a_service_is_judged_by_its_p99_and_not_by_its_rate():
    plan = plan_of()
    windows = windows_of(plan, lambda launch, scene, _: 0.001 * (1 + launch / 100) * (2 if "corun" in scene else 1))
    effects = estimate_effects(plan, windows, margin=0.02)
    rows = effects[(effects["role"] == "lead") & (effects["baseline"] == "alone")]
    assert rows["slowdown"].to_numpy() == pytest.approx([2.0, 2.0])
    assert set(rows["verdict"]) == {"loss"}
    assert effects.groupby("member")["metric"].unique().str[0].to_dict() == {
        "redis-1000@0": "p99 of latency", "redis-2000@0": "p99 of latency", "stream@1": "rate",
    }  # fmt: skip
    found = latencies(plan, windows, []).set_index(["member", "scene", "quantile"])
    row = found.loc["redis-1000@0", "corun:redis-1000+stream", "p95"]
    assert (row["what"], row["ratio"], row["steps"]) == ("request", pytest.approx(2.0), 4 * 3 * 1000)
    assert row["ms"] == pytest.approx(np.exp(np.mean(np.log([1.01, 1.02, 1.03, 1.04]))))
    assert set(found.loc["stream@1"]["what"]) == {"step"}


def test_a_quantile_that_is_but_a_bound_is_refused():
    plan = plan_of()
    is_late = lambda scene, member: "corun" in scene and "2000" in member  # noqa: E731
    windows = windows_of(plan, lambda *_: 0.001, lambda _, scene, member: 0.9 if is_late(scene, member) else 1.0)
    bounds = pd.Series([is_late(*each) for each in windows[["scene", "member"]].to_numpy()])
    windows = windows.assign(p95_s=windows["p95_s"].mask(bounds), p99_s=windows["p99_s"].mask(bounds))
    found = latencies(plan, windows, []).set_index(["member", "scene", "quantile"]).sort_index()
    refused = found.loc["redis-2000@0", "corun:redis-2000+stream"]["refused"]
    assert refused["p50"] == ""
    assert refused["p99"] == refused["p95"] == "so many requests were unanswered when slices ended that it is not known"
    table = services(plan, windows)
    assert windows.equals(without_saturated([plan], windows))  # it is not, alone
    row = table[table["saturated"]].iloc[0]
    assert (row["load"], row["antagonists"], row["service"]) == (2000, "stream", "redis")
    assert row["answered_share"] == pytest.approx(0.9)
    assert table["saturated"].sum() == 1
    assert math.isnan(row["p99_ms"])


def test_one_window_with_a_bound_is_not_left_out_of_its_launch():
    """What is left are the quick windows: a load would keep a limit that it exceeds in a third of the time."""
    plan = plan_of()
    windows = windows_of(plan, lambda *_: 0.001)
    late = windows["scene"].str.contains("corun") & windows["member"].str.contains("2000") & (windows["round"] == 1)
    windows = windows.assign(p99_s=windows["p99_s"].mask(late))
    table = services(plan, windows)
    unknown = table[table["p99_ms"].isna()]
    assert unknown[["load", "antagonists"]].to_numpy().tolist() == [[2000, "stream"]]
    assert loads(table, {"p99": 2.0}).set_index("antagonists")["load"].to_dict() == {"": 2000, "stream": 1000}


def test_each_processor_saturates_by_itself_and_places_are_kept_apart():
    """Two models are never pooled: what one of them answers says nothing of the other."""
    plan = plan_of((1000,), launches=6)
    lead = plan.cohorts[0].lead
    windows = windows_of(plan, lambda *_: 0.001, lambda launch, *_: 0.6 if launch > 3 else 1.0)
    windows = windows.assign(processor=np.where(windows["launch"] > 3, "small", "large"))
    kept = without_saturated(pooled(plan, windows), windows)
    judged = kept[kept["member"] == lead.name]
    assert (judged["rate"].isna() == (judged["launch"] > 3)).all()
    assert kept[kept["member"] != lead.name].equals(windows[windows["member"] != lead.name])
    near = plan_of((1000,)).model_copy(
        update={"mixes": tuple(each.model_copy(update={"name": f"{each.name}:smt"}) for each in plan.mixes)}
    )
    assert set(services(near, windows_of(near, lambda *_: 0.001))["antagonists"]) == {"", "stream:smt"}


def test_a_service_that_is_saturated_alone_has_no_loss_beside_others():
    """Between two bounds a loss would look like none: 'no change', where half of the requests are not answered."""
    plan = plan_of()
    windows = windows_of(plan, lambda *_: 0.2, lambda _, __, member: 0.5 if "2000" in member else 1.0)
    effects = estimate_effects(plan, without_saturated([plan], windows), margin=0.02)
    rows = effects[(effects["role"] == "lead") & (effects["baseline"] == "alone")].set_index("lead")
    assert rows["verdict"].to_dict() == {"redis-1000": "no loss", "redis-2000": "no data"}
    results = results_of(plan, without_saturated([plan], windows))
    assert "saturated alone already: it answers 50 % of its requests there, and 50 % here" in pairs(results)[1].note


def test_what_is_but_a_bound_counts_for_a_loss_and_for_no_baseline():
    records = np.array([[1, 1, 2], [2, 2, 0], [3, 3, 0]], dtype=np.uint64) * S
    found = Recorded(records).within([(0, 10 * S, 10 * S)])
    assert math.isnan(found.speed())
    assert found.speed(at_most=True) == pytest.approx(1 / 8)
    assert math.isnan(found.columns["p99_s"])


def test_services_that_differ_in_more_than_their_load_are_two():
    plan = plan_of()
    other = plan.launches[-1].cohort
    lead = other.members[0].model_copy(update={"command": (*other.members[0].command, "--keys", "5")})
    changed = other.model_copy(update={"members": (lead, *other.members[1:])})
    launches = tuple(
        launch.model_copy(update={"cohort": changed}) if launch.cohort == other else launch for launch in plan.launches
    )
    table = services(plan.model_copy(update={"launches": launches}), windows_of(plan, lambda *_: 0.001))
    assert set(table["service"]) == {"redis-1000", "redis-2000"}


@pytest.mark.parametrize(
    ("names", "called"),
    [
        (["redis-1000", "redis-2000"], "redis"),
        (["redis.fast-1", "redis.fast-20"], "redis.fast"),
        (["redis-1000", "heavy"], "redis-1000/heavy"),  # either alone would be taken for a load
        (["calm", "crowded"], "calm/crowded"),
    ],
)
def test_a_service_is_called_what_its_loads_have_in_common(names, called):
    lead = plan_of((1000,)).cohorts[0].lead
    assert set(_names({f"{name}@0": lead for name in names}).values()) == {called}


# Loads


def measured(ms, high, saturated=(), beside=""):
    rows = [
        {
            "study": "s", "service": "redis", "role": "lead", "kind": "corun" if beside else "alone", "load": load,
            "antagonists": beside, "partition": "unmanaged", "platform": "measured", "machine": "", "launches": 5,
            "saturated": load in saturated, "p99_ms": m, "p99_ms_high": h,
        }
        for load, m, h in zip((1000.0, 2000.0, 4000.0, 8000.0), ms, high, strict=True)
    ]  # fmt: skip
    return frame(rows, SERVICES)


def test_the_upper_end_decides_and_what_lies_between_is_interpolated():
    row = loads(measured([0.5, 0.8, 1.9, 9], [0.6, 1.0, 4.0, 12]), {"p99": 2.0}).iloc[0]
    assert (row["load"], row["load_ms_high"], row["next_load"], row["source"]) == (2000, 1.0, 4000, "interpolated")
    assert row["interpolated"] == pytest.approx(2000 * 2**0.5)  # half-way, on scales of logarithms
    assert row["why"] == ""


@pytest.mark.parametrize(
    ("high", "saturated", "load", "why"),
    [
        ([0.1, 0.2, 0.3, 0.4], (), 8000, "every load that was measured keeps the limit"),
        ([3, 4, 5, 6], (), math.nan, "the lowest load that was measured exceeds the limit"),
        ([0.1, 0.2, 0.3, math.nan], (8000,), 4000, "the next higher one saturates the service"),
        ([0.1, math.nan, 0.3, 0.4], (), 1000, "the next higher one has no interval: it takes three launches, and "
         "enough requests that were answered"),
    ],
)  # fmt: skip
def test_a_load_above_one_that_fails_is_never_named(high, saturated, load, why):
    row = loads(measured([0.1] * 4, high, saturated), {"p99": 2.0}).iloc[0]
    assert row["load"] == pytest.approx(load, nan_ok=True)
    assert math.isnan(row["interpolated"])
    assert row["why"] == why


def test_a_limit_without_a_service_is_refused():
    catalogue = {
        name: Workload(command="true", requests=name == "redis", progress="heartbeat") for name in ("redis", "x")
    }
    limited = {"name": "s", "recommend": {"latency": {"p99": "1 ms"}}, "antagonists": ["redis", "x"]}
    check_latency(Study(leads=["redis"], **limited), catalogue, "s.yaml, line 4")
    check_latency(Study(leads=["x"], **limited | {"recommend": {}}), catalogue, "s.yaml, line 4")
    with pytest.raises(CastmatesError, match=r"^s.yaml, line 4: 'recommend.latency' is a limit for open-loop services"):
        check_latency(Study(leads=["x"], **limited), catalogue, "s.yaml, line 4")


def test_a_study_without_a_limit_has_no_table_of_loads(tmp_path):
    folder, plan = StudyFolder(tmp_path), plan_of()
    assert "services" in tables_of(plan, folder)
    assert "loads" not in tables_of(plan, folder)
    assert "loads" in tables_of(plan.model_copy(update={"latency_limits": {"p99": 2.0}}), folder)


def test_the_plan_has_the_limits_of_its_study():
    limited = {"recommend": {"latency": {"p99": "500 us"}}}
    assert makers.plan(makers.study(["x"], ["a"], **limited)).latency_limits == {"p99": 0.5}
    assert makers.plan(makers.study(["x"], ["a"])).latency_limits == {}


def test_limits_are_times():
    assert RecommendKeys(latency={"p99": "500 us", "p50": "0.1 s"}).limits_ms == {"p99": 0.5, "p50": 100.0}
    for wrong in ({"p99": 2}, {"p99": "0 ms"}, {"p99": "2 min"}, {"p90": "2 ms"}):
        with pytest.raises(ValidationError):
            RecommendKeys(latency=wrong)


# The simulated queues of test_services_coverage.py


@pytest.mark.parametrize(("busy", "share"), [(0.75, 1.0), (1.25, 0.8)])
def test_what_is_answered_shows_whether_a_service_keeps_up(busy, share):
    windows = queues_of(busy, 6, np.random.default_rng(2))
    alone = windows[windows["scene"] == "alone"]
    found = alone["answered"].sum() / alone["offered"].sum()
    assert found == pytest.approx(share, abs=0.03)
    assert (found < KEEPS_UP) == (share < 1)


# Words


def results_of(plan, windows, limits=None):
    table = services(plan, windows)
    effects = estimate_effects(plan, windows, margin=0.02)
    alone = effects[(effects["role"] == "lead") & (effects["baseline"] == "alone")]
    return SimpleNamespace(
        only_traced=False,
        services=table, loads=loads(table, limits or {}), effects=effects, margin=0.02, extended=(),
        platforms=["measured"],
        against_alone={lead: rows.to_dict("records") for lead, rows in alone.groupby("lead", sort=False)},
        service_workloads={"redis-1000", "redis-2000"}, launches=pd.DataFrame({"status": ["measured"], "lead": ["x"]}),
        windows=windows, controls=frame([], {"verdict": "str", "control": "str"}), plan=plan,
        sensitivity_stamp=("", ""),
    )  # fmt: skip


def test_words_of_services(monkeypatch):
    monkeypatch.setattr("castmates.report.answer.headline.nothing_left", lambda _: False)
    plan, told = plan_of(), {}
    for times in (2.0, 1.0):
        slower = lambda launch, scene, _, times=times: (1 + launch / 1e4) / 1000 * (times if "corun" in scene else 1)  # noqa: E731
        results = results_of(plan, windows_of(plan, slower))
        found = pairs(results)
        assert all(pair.is_service for pair in found)
        assert words.SPEED in below(results, found)
        told[f"{times:g} times as long"] = [headline(results, found, {}), *(pair.note for pair in found)]
    late = lambda _, scene, member: 0.62 if "corun" in scene else 1.0  # noqa: E731, ARG005
    results = results_of(plan, windows_of(plan, lambda *_: 0.001, late), {"p99": 2.0})
    told["saturated"] = [*words.saturated(results), *words.advice(results), pairs(results)[0].note]
    assert_as_before("services", told)


# The catalogue


def test_a_service_lacks_its_server_and_not_its_load_generator(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "SERVERS_AT", str(tmp_path))
    command = ["openloop", "--load", "5", "--server", "redis"]
    assert identity.lack(command, "redis-server", str(tmp_path)) == "there is no program 'redis-server'"
    server = tmp_path / "redis-server"
    server.write_text("#!/bin/sh\necho Redis server v=7.0\n")
    server.chmod(0o755)
    assert identity.lack(command, None, str(tmp_path)) == ""


def test_keys_that_contradict_each_other_are_refused():
    job = {"command": "python -m castmates.workloads.torchjobs", "options": {"device": "gpu"}, "progress": "heartbeat"}

    def said(keys):
        study = Study.model_validate({"name": "s", "workloads": {"x": {"command": "x"} | keys}})
        return refusal(gather_catalogue, [], study, "s.yaml", ())

    loaded = job | {"options": {"mode": "infer", "load": 50}}
    wrong = {"requests": {"requests": True}, "load": loaded, "frozen": {"frozen_between_steps": True}, "a GPU": job}
    assert_as_before("services-refused", {name: said(keys) for name, keys in wrong.items()})


def test_only_a_service_has_requests_and_a_load():
    plan = plan_of((1000,), 1)
    lead, other = plan.launches[0].cohort.members
    assert (lead.requests, other.requests) == (True, False)
    assert same_service(lead) != same_service(other)
    assert [load_of(lead), load_of(other)] == [1000.0, None]
    words = ("openloop", "--load", "2.5K")
    assert load_of(lead.model_copy(update={"command": words})) == 2500
