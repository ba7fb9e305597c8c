"""What others move through the caches, on a fake machine: the default group's traffic without that of our members."""

from types import SimpleNamespace

import pytest

from castmates.rdt.choose import NoMonitor
from castmates.rdt.fake import LAB_MONITORING_ONLY, LAB_TWO_SOCKETS, SetNumbers
from castmates.rdt.resctrl.foreign_traffic import METRIC, foreign_traffic
from tests.unit.rdt.fakes import Bench
from tests.unit.test_ledger import Case

GB = 1e9


class Clock:
    """Stands still until a test moves it."""

    def __init__(self):
        self.now = 1_000_000_000

    def __call__(self):
        return self.now


def watching(shape, caches, allocated=False):
    """A bench with members that are watched, and what others move beside them."""
    numbers, clock = SetNumbers(), Clock()
    bench = Bench(shape=shape, source=numbers)
    if allocated:
        bench.prepared()
    monitor = bench.monitor()
    monitor.attach(bench.held)
    traffic = foreign_traffic(monitor, caches)
    traffic._clock = clock
    traffic.attach({})
    return SimpleNamespace(bench=bench, numbers=numbers, clock=clock, traffic=traffic, paths=monitor.groups.paths)


def passed(here, moved, seconds=2.0):
    """Let others and members move so many bytes in this time; return the sample."""
    here.traffic.start([])
    for key, amount in moved.items():
        here.numbers.moved[key] = here.numbers.moved.get(key, 0) + amount
    here.clock.now += int(seconds * GB)
    (sample,) = here.traffic.stop()
    return sample


def test_members_in_monitoring_groups_are_taken_off_what_the_default_group_contains():
    here = watching(LAB_MONITORING_ONLY, [0])
    lead = here.paths["lead@0"]
    assert lead.startswith("mon_groups/")
    sample = passed(here, {("", 0): 3 * GB, (lead, 0): 10 * GB})
    assert (sample.subject, sample.metric) == ("host", METRIC)
    assert sample.value == pytest.approx(1.5 * GB, rel=1e-4)
    assert "less" in here.traffic.about()[METRIC]


def test_members_in_control_groups_are_not_in_it_and_other_control_groups_are():
    here = watching(LAB_TWO_SOCKETS, [0], allocated=True)
    assert not here.paths["lead@0"].startswith("mon_groups/")
    here.bench.fake.make("COS1")
    here.traffic.attach({})
    sample = passed(here, {("", 0): 2 * GB, ("COS1", 0): 4 * GB, (here.paths["lead@0"], 0): 9 * GB, ("", 1): 7 * GB})
    assert sample.value == pytest.approx(3 * GB, rel=1e-4)  # and nothing of the other socket's cache


def test_what_cannot_be_read_is_no_zero():
    here = watching(LAB_MONITORING_ONLY, [0])
    here.bench.fake.fail(here.paths["lead@0"], "mbm_total_bytes", "Unavailable")
    sample = passed(here, {("", 0): 2 * GB})
    assert sample.value is None
    assert "Unavailable" in sample.note


def test_a_default_group_that_loses_its_own_count_goes_back_and_is_none():
    """The kernel then shows the sum of the groups inside it alone."""
    here = watching(LAB_MONITORING_ONLY, [0])
    passed(here, {("", 0): 5 * GB})
    here.traffic.start([])
    here.bench.fake.fail("", "mbm_total_bytes", "Unavailable")
    here.clock.now += 1_000_000_000
    (sample,) = here.traffic.stop()
    assert (sample.value, sample.note) == (None, "the counter went back, or ran over")


def test_a_count_beyond_what_hardware_can_move_is_refused():
    here = watching(LAB_MONITORING_ONLY, [0])
    assert passed(here, {("", 0): 17_592_178 * GB}).value is None


def test_there_is_nothing_without_resctrl():
    assert foreign_traffic(NoMonitor(), [0]) is None


@pytest.mark.parametrize(("moved", "kinds"), [(0.9 * GB, []), (1.1 * GB, ["foreign traffic"]), (None, [])])
def test_the_ledger_rejects_a_stretch_for_it(moved, kinds):
    case = Case(values={("host", METRIC): moved})
    assert case.kinds() == kinds
    if kinds:
        assert case.reasons() == ["foreign traffic: others moved 1.1 GB/s through the caches (limit 1 GB/s)"]
