"""The states of threads are those of the schedule, whichever tracer recorded it."""

import pytest

from castmates.timeline import converting as index
from castmates.timeline.model import Making, Registry, Timeline
from castmates.timeline.perf.load import add_perf
from tests.unit.perf_maker import MEMBER
from tests.unit.schedule_maker import START, Schedule, State


def states(timeline: Timeline) -> list[State]:
    rows = timeline.intervals[timeline.intervals["kind"] == "state"]
    rows = rows[(rows["name"] != "unknown") | (rows["detail"] != "")]  # not what lies before a thread's first event
    tids = rows["track"].map(timeline.tracks.set_index("track")["tid"])
    return sorted(zip(tids, rows["t0_ns"] - START, rows["t1_ns"] - START, rows["name"], strict=True))


@pytest.mark.parametrize("unseen", [0, 0.3])
@pytest.mark.parametrize("seed", range(10))
def test_perf_and_ftrace_show_the_states_of_the_schedule(tmp_path, seed, unseen):
    """A wait whose wake-up nobody saw is unknown from its begin to its end."""
    schedule, making = Schedule(seed, unseen, own_switches=seed % 2 == 0).go(200), Making()
    schedule.perf.write(tmp_path / "perf.data")
    add_perf(making, Registry(making), tmp_path / "perf.data", {MEMBER: "lead@0"})
    (tmp_path / "trace.txt").write_text("# tracer: nop\n" + "\n".join(schedule.lines) + "\n")
    of_ftrace = index.read(tmp_path / "trace.txt", index.importer_of(tmp_path / "trace.txt"))
    assert len(schedule.states) > 100
    assert any(name == "unknown" for *_, name in schedule.states) == (unseen > 0)
    assert states(of_ftrace) == sorted(schedule.states)
    assert states(making.made()) == sorted(schedule.states)
