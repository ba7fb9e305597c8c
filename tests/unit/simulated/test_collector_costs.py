"""What a collector costs the lead is seen to the last digit; and it is really off when it is off."""

import math

import pytest

from castmates.study.profile_launches import cost_windows
from castmates.study.spec import Counting
from tests.unit.simulated.machine import LEAD, MS, Machine, Script, launch_of

PAIRS = 2


class Noted:
    """A collector that does nothing inside windows, and notes what it is asked to do."""

    inside_windows = True

    def __init__(self, name):
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
    """Makes the lead's steps twenty times as long from its attachment on, read or not, as inherited counters do."""

    def attach(self, members):
        super().attach(members)
        self.lead.step = 20 * MS

    def close(self):
        super().close()
        self.lead.step = MS


@pytest.fixture(scope="module")
def measured():
    thief, idle = Thief("thief"), Noted("idle")
    launch = launch_of(rounds=1, spare_rounds=0, counters=Counting(cost_pairs=PAIRS))
    machine = Machine(launch, {LEAD: Script(MS)}, collectors=[thief, idle])
    thief.lead = machine.jobs[LEAD].script
    return machine.measure(), thief, idle


def test_a_thief_is_found_out_and_who_is_idle_is_not_blamed(measured):
    thief, idle = (measured[0].costs[name] for name in ("thief", "idle"))
    assert thief["of"] == "rate of the lead"
    assert thief["pairs"] == len(thief["logs"]) == PAIRS
    assert thief["change_pct"] == pytest.approx(-95, abs=0.01)
    assert thief["logs"] == pytest.approx([-math.log(20)] * PAIRS, abs=1e-4)
    assert idle["change_pct"] == pytest.approx(0, abs=0.01)


def test_who_is_off_is_closed_and_not_asked_until_it_is_attached_again(measured):
    for one in measured[1:]:
        told = " ".join(one.notes)
        assert told.count("close attach") == PAIRS
        assert told.replace("start stop", "").split() == ["attach", *["close", "attach"] * PAIRS, "close"]


def test_everybody_else_is_on_meanwhile_and_these_windows_are_none_of_the_launchs(measured):
    outcome, thief, idle = measured
    assert len(outcome.windows) == len(outcome.launch.cohort.scenes)
    # A window of each scene, and in each round of costs one with everybody on and one without each of the others.
    assert thief.notes.count("start") == idle.notes.count("start") == len(outcome.windows) + 2 * PAIRS
    assert cost_windows(outcome.launch.design) >= 2 * PAIRS, "no more than `castmates plan` said"


def test_who_works_at_the_edges_alone_costs_a_window_nothing_and_its_reads_are_timed(measured):
    cost = measured[0].costs["cputime"]
    assert (cost["pairs"], cost["change_pct"]) == (0, None)
    assert cost["seconds"] >= 0
