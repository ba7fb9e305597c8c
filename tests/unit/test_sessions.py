"""Sessions: which launches are of one, whether they differ, what another hour would show, and how that is spread."""

import math
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from castmates.analysis.core import APART_S, LAUNCHES, NODES, SESSIONS, between, drift, over_levels, sessions_of, these
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.keys import ROW
from castmates.analysis.statistics.intervals import over_launches
from castmates.report.answer.hours import hours
from castmates.report.answer.pairs import pairs
from castmates.report.figures import heatmap
from castmates.report.paper.tables import paper_tables
from castmates.report.results import Results
from castmates.results.columns.study import CONTROLS, frame
from castmates.results.columns.study import LAUNCHES as COLUMNS_OF_LAUNCHES
from castmates.results.records import REUSED
from tests.unit.printed_intervals import assert_told
from tests.unit.snapshots import assert_as_before
from tests.unit.windows_maker import cohort, mix, plan, written

STUDIES = 2000
MANY = 20_000  # of the documented figures
SHAPES = ((8,), (4, 4), (2, 2, 2, 2), (1,) * 8)  # launches of each session
SPREADS = (0.0, 0.01, 0.03)  # between sessions
ERROR = 3 * math.sqrt(0.95 * 0.05 / STUDIES)  # three standard errors of a share
TAU, SCATTER = 0.03, 0.015  # of sessions and of launches
HOUR = 3600.0
HOUR_ENDS = ("sessions_another_low", "sessions_another_high")
BEGIN = 1.76e9  # seconds since 1970
PLAN = plan([cohort("c", mix("lead@0", "stream@1"))], 6)
VALUES = np.log([1.05, 1.07, 1.10, 1.09, 1.16, 1.12])  # slowdown of each launch


def simulated(sizes, seed, tau=TAU, studies=STUDIES):
    """Studies with a true effect of 0 over all hours, and the mean of one more session of each."""
    dice = np.random.default_rng(seed)
    session = np.repeat(np.arange(len(sizes)), sizes)
    own = dice.normal(0, tau, (studies, len(sizes)))
    values = own[:, session] + dice.normal(0, SCATTER, (studies, len(session)))
    another = dice.normal(0, tau, studies) + dice.normal(0, SCATTER, (studies, sizes[0])).mean(axis=1)
    index = pd.MultiIndex.from_product(
        [range(studies), ["measured"], ["c"], range(len(session))], names=[*ROW, "cohort", "launch"]
    )
    columns = {"value": values.ravel(), "rounds": 3, "variance": 1.0, "successive": 1.0}
    launches = pd.MultiIndex.from_product([["c"], range(len(session))], names=["cohort", "launch"])
    return pd.DataFrame(columns, index=index), pd.Series(session, index=launches), another


def analysed(sizes, seed=1, tau=TAU, studies=STUDIES):
    values, sessions, another = simulated(sizes, seed, tau, studies)
    plain = over_launches(values, ROW).reset_index()
    table = over_levels(plain, {SESSIONS: between(values, sessions, SESSIONS, ROW)}, ROW)
    return table, plain, another


def covers(table, truth, ends=("low", "high")):
    return ((table[ends[0]] <= truth) & (table[ends[1]] >= truth)).mean()


def effects(times, values=VALUES, hosts=None):
    """The effects of a study whose launches began then, in its row of the lead against alone."""
    windows = written(PLAN, lambda launch, _, scene, __: math.exp(-values[launch.number - 1] * ("corun" in scene)))
    windows["started"] = np.asarray(times, dtype=float)[windows["launch"] - 1]
    if hosts:
        windows["host"] = np.asarray(hosts, dtype=object)[windows["launch"] - 1]
    table = estimate_effects(PLAN, windows, 0.02)
    return table[(table["role"] == "lead") & (table["baseline"] == "alone")].iloc[0]


def test_a_launch_that_begins_half_an_hour_after_the_last_one_is_of_its_session_and_a_later_one_is_not():
    times = [BEGIN, BEGIN + APART_S, BEGIN + 2 * APART_S + 1, BEGIN + 9 * HOUR, BEGIN + 9 * HOUR + 60]
    windows = pd.DataFrame({"cohort": list("abaab"), "launch": [1, 1, 2, 3, 2], "started": times})
    for table in (windows, windows.iloc[::-1]):
        found = sessions_of(table)
        assert [found[place] for place in (("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2))] == [0, 0, 1, 2, 2]


def test_launches_without_a_time_are_of_one_session():
    windows = pd.DataFrame({"cohort": "a", "launch": [1, 2, 3], "started": math.nan})
    assert sessions_of(windows).nunique() == 1
    row = effects([math.nan] * 6)
    assert (row["sessions"], row["over"]) == (1, LAUNCHES)
    assert row[["sessions_p_holm", "hour_low", "hour_high", "drift_p_holm"]].isna().all()


def test_one_session_changes_no_number():
    unknown, known = effects([math.nan] * 6), effects([BEGIN + 300 * number for number in range(6)])
    assert known["sessions"] == 1
    pd.testing.assert_series_equal(known.drop("drift_p_holm"), unknown.drop("drift_p_holm"), check_names=False)


def test_three_sessions_are_the_units_and_differ_as_by_an_analysis_of_variance():
    row = effects([BEGIN + hour * HOUR + at for hour in (0, 5, 24) for at in (0, 300)])
    parts = VALUES.reshape(3, 2)
    means = parts.mean(axis=1)
    centre, spread, factor = means.mean(), means.std(ddof=1), stats.t.ppf(0.975, 2)
    assert (row["sessions"], row["over"], row["freedom"]) == (3, SESSIONS, 2)
    assert row["sessions_p_holm"] == pytest.approx(stats.f_oneway(*parts).pvalue)
    assert row["slowdown"] == pytest.approx(math.exp(centre))
    assert row["slowdown_high"] == pytest.approx(math.exp(centre + factor * spread / math.sqrt(3)))
    reach = factor * spread * math.sqrt(1 + 1 / 3)
    ends = [100 * -math.expm1(-end) for end in (centre - reach, centre + reach)]
    assert [row["hour_low"], row["hour_high"]] == pytest.approx(ends)


def test_whether_a_loss_still_grows_is_over_sessions_as_the_loss_is():
    windows = written(PLAN, lambda launch, _, scene, __: math.exp(-VALUES[launch.number - 1] * ("corun" in scene)))
    times = np.array([BEGIN + hour * HOUR + at for hour in (0, 5, 24) for at in (0, 300)])
    windows["started"] = times[windows["launch"] - 1]
    windows["later"] = windows["rate"]  # so that it is as large as the loss
    row = estimate_effects(PLAN, windows, 0.02).query("role == 'lead' and baseline == 'alone'").iloc[0]
    assert row["over"] == SESSIONS
    assert [row[f"growth_{end}"] for end in ("low", "high")] == pytest.approx(
        [100 * (row[f"slowdown_{end}"] - 1) for end in ("low", "high")]
    )
    assert not row["still_growing"]  # for certain: two degrees of freedom are left


def test_two_sessions_are_covered_by_launches_inside_them_and_say_nothing_of_another_hour():
    row = effects([BEGIN + hour * HOUR + at for hour in (0, 5) for at in (0, 300, 600)])
    assert (row["sessions"], row["over"], row["freedom"]) == (2, these(SESSIONS), 4)
    assert row["sessions_p_holm"] == pytest.approx(stats.f_oneway(*VALUES.reshape(2, 3)).pvalue)
    assert math.isnan(row["hour_low"])


@pytest.mark.parametrize("sizes", [(10, 1), (10, 1, 1), (5, 2)])
def test_a_few_launches_that_were_added_later_make_no_interval_wider_than_launches_do(sizes):
    table, plain, _ = analysed(sizes, studies=3)
    assert table[["mean", "low", "high"]].equals(plain[["mean", "low", "high"]])
    assert set(table["over"]) == {LAUNCHES}
    assert set(table["sessions"]) == {len(sizes)}
    assert table["sessions_p"].notna().all()
    assert table["sessions_another_low"].isna().all()


def test_several_nodes_stay_the_level_and_sessions_are_only_counted():
    times = [BEGIN + hour * HOUR for hour in range(6)]
    row, alike = (effects(each, hosts=list("aabbcc")) for each in (times, [math.nan] * 6))
    assert (row["sessions"], row["nodes"], row["over"]) == (6, 3, NODES)
    pd.testing.assert_series_equal(row.drop("sessions"), alike.drop("sessions"), check_names=False)


def test_the_drift_is_that_of_a_regression_over_time():
    times = BEGIN + np.cumsum([0, 100, 250, 200, 90, 400.0])
    assert effects(times)["drift_p_holm"] == pytest.approx(stats.linregress(times, VALUES).pvalue)
    values, sessions, _ = simulated((3,), 1)
    when = pd.Series([0.0, 60, 200], index=sessions.index)
    assert drift(values, when, ROW).isna().all()  # below four launches


def test_drift_is_rarely_seen_where_there_is_none():
    values, sessions, _ = simulated((6,), 3, tau=0.0)
    when = pd.Series(np.arange(6.0), index=sessions.index)
    assert (drift(values, when, ROW) < 0.05).mean() == pytest.approx(0.05, abs=ERROR)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_interval_over_sessions_covers_and_one_over_launches_does_not(seed):
    table, plain, another = analysed((2, 2, 2, 2), seed)
    assert set(table["over"]) == {SESSIONS}
    assert covers(table, 0.0) == pytest.approx(0.95, abs=ERROR)
    assert_told("effects", "hour_low", covers(table, another, HOUR_ENDS))
    assert covers(plain, 0.0) < 0.90


def test_alike_sessions_are_rarely_called_different():
    table, _, _ = analysed((2, 2, 2, 2), tau=0.0)
    assert (table["sessions_p"] < 0.05).mean() == pytest.approx(0.05, abs=ERROR)


def results(times, trend=None):
    """Results of a lead beside stream and beside chase, measured then; losses differ by session, or by a trend."""
    mixes = [mix("lead@0", "stream@1"), mix("lead@0", "chase@1")]
    study = plan([cohort("c", *mixes)], len(times))
    dice = np.random.default_rng(1)
    sessions = np.asarray(times) // (2 * HOUR)
    extra = 0.01 * (sessions % 3) if trend is None else trend * np.arange(len(times))
    losses = {name: dice.normal(0.1, 0.002, len(times)) + extra for name in ("stream", "chase")}

    def rate(launch, _, scene, name):
        beside = scene.removeprefix("corun:lead+")
        return 1 - losses[beside][launch.number - 1] if beside in losses and name == "lead@0" else 1.0

    windows = written(study, rate)
    windows["started"] = BEGIN + np.asarray(times, dtype=float)[windows["launch"] - 1]
    began = [datetime.fromtimestamp(BEGIN + time, UTC).isoformat(timespec="seconds") for time in times]
    usual = {"study": "example", "cohort": "c", "lead": "lead", "status": "measured", "total_seconds": 60.0,
             "platform": "measured", "rounds": 3, "windows": 9, "windows_rejected": 0}  # fmt: skip
    launches = [usual | {"launch": number, "started": began_then} for number, began_then in enumerate(began, start=1)]
    return Results(
        "example", plan=study, windows=windows, launches=frame(launches, COLUMNS_OF_LAUNCHES),
        effects=estimate_effects(study, windows, 0.02), controls=frame([], CONTROLS),
    )  # fmt: skip


def said(times):
    found = results(times)
    return hours(found, pairs(found))


def test_the_first_screen_says_within_what_time_it_was_measured_or_what_each_session_lost():
    minute, hour = 60.0, HOUR
    assert_as_before(
        "hours",
        {
            "one session": said([0.0, 5 * minute, 11 * minute]),
            "one session of many hours": said([20 * minute * number for number in range(10)]),
            "two sessions": said([0.0, minute, 4 * hour, 4 * hour + minute]),
            "four sessions, one of three launches": said(
                [at + of for at in (0, 4 * hour, 9 * hour) for of in (0, 60)] + [30 * hour + of for of in (0, 1, 2)]
            ),
            "eight sessions": said([2 * hour * number for number in range(8)]),
        },
    )


def test_controls_that_were_reused_from_hours_before_are_no_second_session():
    found = results([4 * HOUR, 4 * HOUR + 60, 4 * HOUR + 120])
    once = hours(found, pairs(found))
    assert any("another hour may differ" in sentence for sentence in once)
    began = datetime.fromtimestamp(BEGIN, UTC).isoformat(timespec="seconds")
    row = found.launches.iloc[-1].to_dict() | {"cohort": "control", "launch": 2, "started": began}
    spec = {"cohort": {"id": "control"}, "number": 2}
    record = {"status": "measured", "spec": spec, REUSED: {"study": "before", "started": began}}
    found.tables["launches"] = frame([*found.launches.to_dict("records"), row], COLUMNS_OF_LAUNCHES)
    assert not any("another hour may differ" in sentence for sentence in hours(found, pairs(found)))
    assert hours(replace(found, recorded=(record,)), pairs(found)) == once


@pytest.mark.parametrize("apart", [60.0, 2 * HOUR])
@pytest.mark.parametrize(("slope", "proven"), [(0.01, True), (-0.01, True), (0.0, False)])
def test_a_drift_over_time_is_said_where_it_is_proven(apart, slope, proven):
    found = results([apart * number for number in range(6)], trend=slope)
    p = found.lead_effects("alone").set_index("mix")["drift_p_holm"]
    assert set(p < 0.05) == {proven}
    told = [sentence for sentence in hours(found, pairs(found)) if "drift" in sentence]
    if proven:
        (sentence,) = told
        assert sentence.count("lead beside") == 2
    assert bool(told) == proven


@pytest.mark.parametrize(
    ("hours_of_launches", "words"),
    [
        ([0.0, 0.1, 0.2, 0.3], "between launches"),
        ([0.0, 0.1, 4.0, 4.1], "between launches of these sessions"),
        ([0.0, 4.0, 9.0, 14.0], "between sessions"),
    ],
)
def test_captions_and_tables_say_what_the_intervals_of_effects_are_between(hours_of_launches, words):
    found = results([HOUR * each for each in hours_of_launches])
    figure, _ = heatmap.draw(found)
    key = " ".join(text.get_text() for text in figure.texts).replace("\n", " ")
    for text in (key, heatmap.caption(found), paper_tables(found)["effects.tex"]):
        assert re.findall(r"between launches(?: of these sessions)?|between sessions", text) == [words]


def test_nothing_is_said_of_hours_where_a_model_was_played_or_the_hours_are_not_known():
    found = results([0.0, 60.0, 120.0])
    for name in ("windows", "launches", "effects"):
        found.tables[name]["platform"] = "modelled"
    assert hours(found, pairs(found)) == []
    found = results([0.0, 60.0, 120.0])
    found.launches["started"] = ""
    assert hours(found, pairs(found)) == []


def table():
    """The figures as the rows of a Markdown table."""
    rows = [
        "| sessions differ by | sessions × launches | headline covers all hours | over launches | another session |"
        " found to differ |",
        "|" + " --- |" * 6,
    ]
    for tau in SPREADS:
        for sizes in SHAPES:
            found, plain, another = analysed(sizes, 20261130, tau, MANY)
            shares = [covers(found, 0.0), covers(plain, 0.0)]
            shares += [covers(found, another, HOUR_ENDS) if len(sizes) > 2 else math.nan]
            shares += [math.nan if found["sessions_p"].isna().all() else (found["sessions_p"] < 0.05).mean()]
            cells = ["–" if math.isnan(share) else f"{100 * share:.1f} %" for share in shares]
            rows.append(f"| {100 * tau:.0f} % | {len(sizes)} × {sizes[0]} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
