"""What `castmates plan` shows of the time after a launch's rounds."""

import pytest

from castmates.study.model import Workload
from castmates.study.profile_launches import after_rounds_line, can_be_profiled, cost_windows, profiled_scenes, seconds
from tests.unit.makers import plan, study, workloads

JOB = Workload(
    command="python -m castmates.workloads.tfmodels --model dlrm", progress="heartbeat", environment="tfmodels"
)


def launch_of(**counters: object):
    one = study(["job"], ["beside"], counters=counters, cache={"monitor": 0}, budget={"window": 4, "settle": 0.1})
    return plan(one, programs=workloads("beside", job=JOB)).launches[0]


@pytest.mark.parametrize(
    ("counters", "windows"),
    [
        ({"cost_pairs": 0}, 0),
        ({"cost_pairs": 3, "events": [], "topdown": 0}, 3 * 2),  # migrations are always counted
        ({"cost_pairs": 3, "events": ["faults"], "topdown": 0, "series": 0}, 3 * 3),
        ({"cost_pairs": 3, "events": ["faults"], "topdown": 0}, 3 * 4),
        ({"cost_pairs": 3, "events": ["faults"], "topdown": 1}, 3 * 4 + 3 * 3),  # Top-Down in a separate round
    ],
)
def test_the_windows_that_tell_costs_are_counted(counters, windows):
    assert cost_windows(launch_of(**counters).design) == windows


def test_windows_are_short_and_a_job_that_can_be_profiled_is():
    launch = launch_of(cost_pairs=3, events=[], topdown=0, profile=8)
    assert profiled_scenes(launch) == 2
    assert seconds(launch) < 6 * 1.3 + 10
    assert after_rounds_line([launch]).startswith(
        "After the rounds of a launch: up to 6 short windows of the lead alone, which show what measuring costs; "
        "8 profiled steps of the lead in each of up to 2 scenes, which enter no rate (about "
    )
    assert after_rounds_line([launch]).endswith(" s and the time of these steps).")
    assert after_rounds_line([launch_of(cost_pairs=3, profile=0)]).endswith(" s).")


def test_a_job_of_tensorflow_lite_traces_nothing():
    cohort = launch_of(profile=8).cohort
    lead = cohort.lead.model_copy(update={"command": (*cohort.lead.command, "--engine", "lite")})
    assert can_be_profiled(cohort)
    assert not can_be_profiled(cohort.model_copy(update={"members": (lead, *cohort.members[1:])}))


def test_nothing_is_said_where_nothing_is_added():
    other = plan(study(["a"], ["b"], counters={"profile": 8, "cost_pairs": 0})).launches
    assert after_rounds_line(other) == "", "whatever else runs cannot be profiled"
    assert after_rounds_line([]) == ""
