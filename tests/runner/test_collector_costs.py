"""What a collector costs the lead is seen where it does cost, with real processes; and it is really off when off."""

import json
import math
from pathlib import Path

import pytest

from castmates.pipeline.measure_launch import measure_launch
from castmates.runner.rounds import hardware
from castmates.runner.rounds.ledger import Ledger
from castmates.study.after_rounds import cost_windows
from castmates.study.spec import Launch
from tests.runner.stage import PYTHON, counter, plan_of

pytestmark = [pytest.mark.needs("two-cpus"), pytest.mark.quiet]
PAIRS = 2


class Noted:
    """A collector that does nothing inside windows, and notes what it is asked to do."""

    inside_windows = True

    def __init__(self, name: str) -> None:
        self.name, self.notes = name, []

    def attach(self, _members):
        self.notes.append("attach")

    def start(self, _active):
        self.notes.append("start")

    def stop(self):
        self.notes.append("stop")
        return []

    def close(self):
        self.notes.append("close")

    def about(self):
        return {}


class Thief(Noted):
    """A collector that makes the lead do twenty times the work for a step, from its attachment on, read or not.

    So do inherited counters, at each context switch; taking CPU time from outside would depend on who else wants it.
    """

    def __init__(self, name: str, toll: Path) -> None:
        super().__init__(name)
        self.toll = toll
        toll.write_bytes(b"\0")

    def attach(self, _members):
        super().attach(_members)
        self.take(19)

    def close(self):
        super().close()
        self.take(0)

    def take(self, more: int) -> None:
        with self.toll.open("r+b") as file:  # in place: the lead has it mapped
            file.write(bytes([more]))


# Beats after so many additions, and after more of them while somebody takes a toll.
PAYING = """
import mmap, sys
from castmates.workloads.heartbeat import Writer
with open(sys.argv[1], "rb") as file:
    toll = mmap.mmap(file.fileno(), 1, access=mmap.ACCESS_READ)
beat = Writer.from_environment()
beat.ready()
steps = 0
while True:
    for _ in range(10000 * (1 + toll[0])):
        steps += 1
    beat.beat()
"""


@pytest.fixture(scope="module")
def measured(kernels, tmp_path_factory):
    """The costs that a launch found, and the collectors that were added to its usual ones."""
    cache, folder = kernels.parents[2], tmp_path_factory.mktemp("launch")
    added = [Thief("thief", folder / "toll"), Noted("idle")]
    paying = counter().model_copy(update={"command": [PYTHON, "-c", PAYING, str(folder / "toll")]})
    usual = hardware.choose_collectors
    keys = {"events": ["faults"], "topdown": 0, "series": 20, "cost_pairs": PAIRS}
    plan = plan_of({"lead": paying, "beside": counter()}, ["beside"], cache, keys, rounds=1, spare_rounds=0, window=0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "judge", lambda *_: [])  # this machine is shared: nobody is to blame for what others do
        patch.setattr(hardware, "choose_collectors", lambda *given: [*usual(*given), *added])
        measure_launch(plan, plan.launches[0].path, folder, cache)
    return json.loads((Path(folder) / "launch.json").read_text()), *added


def test_a_thief_is_found_out_and_who_is_idle_is_not_blamed(measured):
    costs = measured[0]["costs"]
    assert costs["thief"]["of"] == "rate of the lead"
    thief = costs["thief"]
    assert thief["pairs"] == len(thief["logs"]) == PAIRS
    assert thief["change_pct"] == pytest.approx(100 * math.expm1(sum(thief["logs"]) / thief["pairs"]), abs=0.01)
    assert thief["change_pct"] < -60
    assert thief["change_pct"] < costs["idle"]["change_pct"] - 20


def test_who_is_off_is_closed_and_not_asked_until_it_is_attached_again(measured):
    _, thief, idle = measured
    for one in (thief, idle):
        told = " ".join(one.notes)
        assert told.count("close attach") == PAIRS
        assert told.replace("start stop", "").split() == ["attach", *["close", "attach"] * PAIRS, "close"]


def test_everybody_else_is_on_meanwhile(measured):
    record, thief, idle = measured
    # A window of each scene, and in each round of costs one with everybody on and one without each of the others.
    parts = sum(one["of"] == "rate of the lead" for one in record["costs"].values())
    windows = record["windows"] + PAIRS * (parts - 1)
    assert thief.notes.count("start") == idle.notes.count("start") == windows + PAIRS
    ours = PAIRS * (parts - len(("thief", "idle")) + 1)
    assert ours <= cost_windows(Launch.model_validate(record["spec"]).design), "no more than `castmates plan` said"


def test_series_are_a_part_of_their_own_and_edges_are_told_by_the_time_of_their_reads(measured):
    costs = measured[0]["costs"]
    assert {"counters", "counters series", "perf"} & set(costs) >= {"counters", "counters series"}
    assert costs["procstat"]["pairs"] == 0
    assert costs["procstat"]["change_pct"] is None
    assert 0 < costs["procstat"]["seconds"] < measured[0]["seconds"]["measure"]
    assert measured[0]["windows"] == 5, "windows that tell costs are none of the launch's"
