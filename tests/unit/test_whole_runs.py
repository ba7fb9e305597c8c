"""Whether instructions are a lead's work: whole runs must take the same number of them."""

import pytest

from castmates.report.launch_record import LaunchRecord
from castmates.report.text.whole_runs import instructions


def record(runs, fewest, most, progress="instructions", role="lead"):
    member = {"name": "mcf@0", "workload": "mcf", "role": role, "progress": progress}
    kept = {"runs": runs, "fewest_units": fewest, "most_units": most, "slices_again": 1}
    return LaunchRecord({"spec": {"cohort": {"members": [member]}}, "members": {"mcf@0": {"kept_alive": kept}}})


def test_members_are_read():
    assert record(3, 10**9, 10**9).counted_runs == [("mcf", 3, 10**9, 10**9)]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([record(3, 10**9, 1_019_000_000)], ""),
        ([record(1, 10**9, 10**9), record(1, 1_010_000_000, 1_010_000_000)], ""),
        ([record(1, 10**9, 10**9), record(1, 1_030_000_000, 1_030_000_000)], "between 1e+09 and 1.03e+09 instructions"),
        ([record(3, 10**9, 1_100_000_000)], "between 1e+09 and 1.1e+09 instructions (3 runs)"),
        ([record(1, 10**9, 10**9), record(0, 0, 0)], "Only one whole run of mcf was seen"),
        ([record(0, 0, 0), record(0, 0, 0)], "No whole run of mcf was seen"),
        ([record(3, 10, 99, progress="output")], ""),
        ([record(3, 10, 99, role="antagonist")], ""),
    ],
)
def test_runs_that_differ_or_were_not_seen_whole_are_told(records, said):
    found = instructions(records)
    assert bool(found) == bool(said)
    assert said in "".join(found)
