"""The figure of services: a curve for each antagonist, and no latency where a service is saturated."""

from dataclasses import replace

import pytest

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.explanations.services import latencies, loads, services
from castmates.report.figures import services as figure
from castmates.report.figures import steptimes
from castmates.report.figures.style import PREFIX
from castmates.report.page.page import shown
from castmates.report.paper import methods
from castmates.report.text import latency
from castmates.report.text import services as words
from tests.unit.partition_maker import atoms
from tests.unit.test_figure_partitions import results as of_shares
from tests.unit.test_services import plan_of, windows_of

LOADS = (1000, 2000, 4000)


def results(launches=4):
    """A service under three loads, of which the largest saturates it beside stream."""
    plan = plan_of(LOADS, launches)

    def p99(launch, scene, member):
        load = float(member.partition("-")[2].partition("@")[0] or 1)
        return 1e-6 * load * (1 + launch / 50) * (3 if "corun" in scene else 1)

    windows = windows_of(plan, p99, lambda _, scene, member: 0.8 if "corun" in scene and "4000" in member else 1.0)
    table = services(plan, windows)
    return replace(
        of_shares(atoms(), launches=launches), plan=plan, windows=windows, services=table,
        loads=loads(table, {"p99": 5.0}),
        effects=estimate_effects(plan, windows, margin=0.02), latency=latencies(plan, windows, []),
    )  # fmt: skip


def marks(drawn):
    found = (artist.get_gid() or "" for axes in drawn.axes for artist in axes.get_children())
    return [gid.removeprefix(PREFIX) for gid in found if gid.startswith(PREFIX)]


@pytest.mark.landing
def test_each_load_has_its_latencies_and_a_saturated_one_has_a_cross():
    drawn, source = figure.draw(results())
    found = marks(drawn)
    assert sum("alone" in mark for mark in found) == 2 * len(LOADS)
    assert any(mark.startswith("alone, 2,000 a second: p99 2.1") for mark in found)
    beside = [mark for mark in found if mark.startswith("beside stream, 4,000")]
    assert beside == ["beside stream, 4,000 a second: saturated, 80 % answered"]
    assert len(source) == len(results().services)
    told = figure.alternative(results())
    assert "redis, beside stream, 4,000 a second: saturated" in told


def test_a_page_has_the_figure_and_rows_of_services_alone():
    made = results()
    assert "services" in shown(made)
    assert "services" not in shown(of_shares(atoms(), launches=3))
    rows = {(row["beside"], row["load"]): row for row in words.rows(made)}
    assert set(rows) == {(beside, f"{load:,}") for beside in ("alone", "beside stream") for load in LOADS}
    row = rows["beside stream", "4,000"]
    assert (row["share"], [cell["ms"] for cell in row["cells"]]) == ("80 %", ["–"] * 3)
    assert rows["beside stream", "1,000"]["cells"][2]["ratio"].startswith("× 3.00")
    # What is said of steps has no requests in it: its antagonist has no steps here, and is the only one.
    assert {row["member"] for row in latency.rows(made)} == {"stream@1"}
    assert steptimes.lacking(made)


def test_a_paper_says_what_the_rate_of_a_service_is():
    said = "The rate of an open-loop service is one over the 99th percentile"
    assert said in " ".join(methods._of_steps_and_shares(results()))
    assert said not in " ".join(methods._of_steps_and_shares(of_shares(atoms(), launches=3)))


def test_launches_whose_records_were_lost_are_counted_with_the_reason():
    def record(**requests):
        return {"status": "measured", "members": {"memcached-40k@0": {"requests": requests}, "stream@1": {}}}

    lost, sound = record(records=400_000, lost=12_345), record(records=400_000, lost=0)
    torn = record(records=0, lost=0, trouble="the requests file was removed, replaced or cut")
    found = words.unknown(replace(results(), recorded=(sound, lost, torn)))
    assert found == (
        "2 launches of memcached-40k have no latency: 12,345 of 400,000 records of requests were lost in the first of "
        "them."
    )
    assert words.unknown(replace(results(), recorded=(sound,))) == ""
