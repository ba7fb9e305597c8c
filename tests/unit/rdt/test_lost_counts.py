"""Traffic whose count the hardware loses: the series begins anew, nothing is averaged across, nonsense is refused."""

import pytest

from castmates.rdt.fake import AMD_CHIPLETS, V6_1_90, V7_2, SetNumbers
from castmates.rdt.resctrl import tree
from castmates.rdt.resctrl.monitor import ResctrlMonitor
from castmates.rdt.resctrl.tree import MOST_BYTES_A_SECOND, EventFile, Reading, Series
from tests.unit.rdt.fakes import Bench

LEAD = "lead@0"
STEP = 100_000_000  # bytes that are moved between two looks: 1 GB/s
LOOK_NS = 100_000_000


class Watched:
    """A lead on one cache of an AMD machine, with a clock that only looks move on."""

    def __init__(self, kernel):
        self.source, self.now = SetNumbers(), 0
        self.bench = Bench(AMD_CHIPLETS, kernel, cpus=((0,),), source=self.source)
        self.path = self.bench.prepared().groups[LEAD]
        self.monitor = ResctrlMonitor(self.bench.mounted(), clock=lambda: self.now)
        self.monitor.attach(self.bench.held)

    def move(self, steps=1):
        """Let some traffic pass."""
        place = self.path, 0
        self.source.moved[place] = self.source.moved.get(place, 0) + steps * STEP

    def look(self):
        """Look once, a tenth of a second after the last time; value and reason, or None."""
        self.now += LOOK_NS
        found = [one for one in self.monitor._look() if (one.subject, one.metric) == (LEAD, "mbm_total")]
        return (found[0].value, found[0].note) if found else None

    def read(self):
        """Read as the kernel's own worker does once a second."""
        return self.bench.fake.read(f"{self.path}/mon_data/mon_L3_00/mbm_total_bytes").strip()


@pytest.fixture(params=[V7_2, V6_1_90], ids=["fixed", "with-false-overflow"])
def watched(request):
    one = Watched(request.param)
    one.move()
    assert one.look() is None
    one.move()
    assert one.look() == (1e9, "")
    return one


def test_while_the_hardware_does_not_count_there_is_no_value(watched):
    watched.bench.fake.lose(watched.path, 0)
    watched.move()
    assert watched.look() == (None, tree.NO_COUNT_WORDS["Unavailable"])
    watched.bench.fake.track(watched.path, 0)
    watched.move()
    assert watched.look() is None  # the first count of a new series
    watched.move(2)
    assert watched.look() == (2e9, "")


def test_a_loss_between_two_looks_begins_a_new_series(watched):
    """The hardware shows it once only, and what is then read looks like any other number."""
    watched.bench.fake.lose(watched.path, 0)
    watched.bench.fake.track(watched.path, 0)
    watched.move()
    assert watched.look() == (None, tree.RESUMED)
    watched.move()
    assert watched.look() == (1e9, "")


def test_a_false_overflow_is_refused_where_somebody_else_saw_the_mark():
    watched = Watched(V6_1_90)
    watched.move(3)
    watched.look()
    watched.bench.fake.lose(watched.path, 0)
    watched.bench.fake.track(watched.path, 0)
    assert watched.read() == "Unavailable"
    watched.move()
    value, why = watched.look()
    assert value is None
    assert why.startswith("impossible: 1.13e+04 TB/s")
    watched.move()
    assert watched.look() == (1e9, "")
    assert "mbm_total: impossible (1)" in watched.monitor.about()["looks without a value"]


def test_a_kernel_that_forgets_counts_on_where_somebody_else_saw_the_mark():
    watched = Watched(V7_2)
    watched.move(3)
    watched.look()
    watched.bench.fake.lose(watched.path, 0)
    watched.bench.fake.track(watched.path, 0)
    assert watched.read() == "Unavailable"
    watched.move()
    assert watched.look() == (1e9, "")


@pytest.mark.parametrize(("share", "refused"), [(0.99, False), (1.01, True)])
def test_the_bound_of_a_rate(share, refused, monkeypatch):
    clock = iter([0, 0, 10**9, 10**9])
    counts = iter([Reading(0), Reading(int(MOST_BYTES_A_SECOND * share))])
    monkeypatch.setattr(EventFile, "read", lambda _: next(counts))
    one = Series(LEAD, "mbm_total_bytes", 0, EventFile(None, ""), lambda: next(clock))
    assert one.look() is None
    value, why = one.look()
    assert (value is None, why.startswith("impossible")) == (refused, refused)


def test_occupancy_has_no_bound_and_no_series(monkeypatch):
    counts = iter([Reading(5, resumed=True), Reading(10**15)])
    monkeypatch.setattr(EventFile, "read", lambda _: next(counts))
    one = Series(LEAD, "llc_occupancy", 0, EventFile(None, ""))
    assert [one.look(), one.look()] == [(5.0, ""), (1e15, "")]
