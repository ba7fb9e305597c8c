"""What the page shows of the whole mix and of step times: sentences and rows, from tables made by the analysis."""

from dataclasses import replace

import pytest

from castmates.analysis.effects.system import system_metrics
from castmates.report.results import Results
from castmates.report.text import latency, system
from tests.unit.test_latency import table as latencies
from tests.unit.test_system import PAIR, TRIO, rates
from tests.unit.windows_maker import written


def of_mix(made, losses, without=()):
    windows = written(made, rates(losses, without))
    return Results("synthetic", windows=windows, system=system_metrics(made, windows))


def test_the_work_done_together_is_said_with_interval_launches_and_platform():
    found = of_mix(PAIR, {"bert@0": [1.0] * 4, "stream@1": [2.0] * 4})
    assert system.sentences(found) == [
        "bert + stream: 1.50 [1.50, 1.50] times the throughput of one program alone; 2 would be no loss "
        "(4 launches, measured)."
    ]
    row = system.rows(found)[0]
    assert [cell.number for cell in row["cells"]] == ["1.50", "1.50", "0.67", "2.00", "2.00", "0.900"]
    assert len(row["cells"]) == len(system.COLUMNS)


def test_too_few_launches_and_launches_left_out_are_said():
    found = of_mix(TRIO, {"bert@0": [1.1] * 3, "stream@1": [1.5] * 3, "chase@2": [2.0] * 3}, {(1, "chase@2")})
    assert system.sentences(found) == [
        "1 mix has fewer than three launches in which every member has a valid pair: no interval.",
        "Left out of a mix or partition, because one of its members has no valid pair of windows: 1 launch.",
    ]
    assert {cell.interval for cell in system.rows(found)[0]["cells"]} == {""}


@pytest.mark.parametrize("rounds", [2, 3])
def test_a_refused_quantile_is_a_word_in_its_cell_and_a_sentence(rounds):
    found = replace(
        of_mix(PAIR, {"bert@0": [1.0] * 4, "stream@1": [1.0] * 4}), latency=latencies(rounds=rounds).reset_index()
    )
    last = latency.rows(found)[0]["cells"][-1]
    if rounds == 3:
        assert (last["ms"], last["ms_interval"], latency.refusals(found)) == ("10.00", "[10.00, 10.00]", [])
        return
    assert last["ms"] == "too few steps"
    assert latency.refusals(found)[0] == (
        "p99 of bert is left out in all 3 scenes; alone: p99 needs 368 steps in a launch; the most that one has is 280."
    )
    assert latency.needed() == "6, 72 and 368"
