"""Occupancy and traffic of each member, or why there is none."""

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from castmates.rdt.fake import LAB_MONITORING_ONLY, LAB_TWO_SOCKETS, V6_12, Shape
from castmates.rdt.resctrl import groups
from castmates.rdt.resctrl import tree as event_file
from castmates.rdt.resctrl.tree import EventFile, KernelTree, Reading, Series
from tests.unit.rdt import trees
from tests.unit.rdt.fakes import Bench
from tests.unit.rdt.test_allocator import Meddled, as_user, delegate

LEAD, OTHER = "lead@0", "other@1"


class Steady:
    """Every group holds 10 MiB, and each read finds 1 MiB more of traffic, of which local ones are half."""

    def __init__(self):
        self.moved = 0

    def occupancy(self, *_):
        return 10 << 20

    def traffic(self, _group, _domain, local):
        self.moved += 1 << 20  # looks may follow each other at once, and rates have a bound
        return self.moved // (2 if local else 1)


def watching(bench, **options):
    monitor = bench.monitor(**options)
    monitor.attach(bench.held)
    return monitor


def series(monitor, looks=3):
    """Open a window until it has had some looks."""
    before = monitor.looks
    monitor.start()
    deadline = time.monotonic() + 20
    while monitor.looks < before + looks and time.monotonic() < deadline:
        time.sleep(0.002)
    return monitor.stop()


def values(samples, subject, metric):
    return [one.value for one in samples if (one.subject, one.metric) == (subject, metric)]


def test_members_are_watched_in_the_groups_that_the_allocator_made():
    bench = Bench(source=Steady())
    allocator = bench.prepared()
    monitor = watching(bench)
    assert monitor.groups.paths == allocator.groups
    samples = series(monitor)
    assert set(values(samples, LEAD, "llc_occupancy")) == {10 << 20}
    assert all(rate > 0 for rate in values(samples, OTHER, "mbm_total"))
    assert len(values(samples, LEAD, "mbm_local")) == len(values(samples, LEAD, "llc_occupancy")) - 1
    assert {one.source for one in samples} == {"resctrl"}
    monitor.close()
    assert bench.groups() == list(allocator.groups.values())


@pytest.mark.parametrize("shows_places", [True, False])
def test_without_an_allocator_members_get_monitoring_groups_that_go_again(shows_places):
    bench = Bench(LAB_MONITORING_ONLY, source=Steady(), shows_places=shows_places)
    monitor = watching(bench)
    assert bench.groups() == list(monitor.groups.paths.values())
    assert all(path.startswith("mon_groups/castmates.") for path in bench.groups())
    inside = set(map(int, bench.fake.read(f"{monitor.groups.paths[LEAD]}/tasks").split()))
    assert inside == set(bench.tasks.threads([bench.held[LEAD]])[bench.held[LEAD].pid])
    assert values(series(monitor), LEAD, "llc_occupancy")
    monitor.close()
    monitor.close()
    assert bench.groups() == []
    assert bench.released == 1


def test_a_member_that_lies_in_a_foreign_group_is_watched_inside_it():
    bench = Bench()
    bench.fake.make("pod_1")
    for tid in bench.tasks.threads([bench.held[LEAD]])[bench.held[LEAD].pid]:
        bench.fake.write("pod_1/tasks", f"{tid}\n")
    monitor = watching(bench)
    assert monitor.groups.paths[LEAD].startswith("pod_1/mon_groups/castmates.")
    assert monitor.groups.paths[OTHER].startswith("mon_groups/castmates.")
    monitor.close()
    assert bench.groups() == ["pod_1"]


def test_members_that_share_a_group_are_told_apart_inside_it(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    bench = Bench(source=Steady())
    bench.fake.make("castmates-0-0")
    for held in bench.held.values():
        for tid in bench.tasks.threads([held])[held.pid]:
            bench.fake.write("castmates-0-0/tasks", f"{tid}\n")
    monitor = watching(bench)
    assert len(set(monitor.groups.paths.values())) == 2
    assert all(path.startswith("castmates-0-0/mon_groups/") for path in monitor.groups.paths.values())


def test_rates_are_bytes_a_second_by_the_monotonic_clock(monkeypatch):
    clock = iter([0, 0, 2_000_000_000, 2_000_000_000])
    counts = iter([Reading(1000), Reading(5000)])
    one = Series(LEAD, "mbm_total_bytes", 0, EventFile(None, ""), lambda: next(clock))
    monkeypatch.setattr(EventFile, "read", lambda _: next(counts))
    assert one.look() is None
    assert one.look() == (2000.0, "")


def test_a_rate_needs_two_counts_in_a_row(monkeypatch):
    counts = iter([Reading(1000), Reading(None, "Unavailable"), Reading(7000), Reading(6000), Reading(6500)])
    one = Series(LEAD, "mbm_total_bytes", 0, EventFile(None, ""))
    monkeypatch.setattr(EventFile, "read", lambda _: next(counts))
    assert one.look() is None
    assert one.look() == (None, "Unavailable")
    assert one.look() is None
    assert one.look() == (None, "the counter went back: it was reset, or ran over")
    value, why = one.look()
    assert value > 0
    assert why == ""


def test_windows_do_not_share_counts():
    bench = Bench(source=Steady())
    bench.prepared()
    monitor = watching(bench)
    for _ in range(2):
        samples = series(monitor)
        assert len(values(samples, LEAD, "mbm_total")) == len(values(samples, LEAD, "llc_occupancy")) - 1
    assert monitor.stop() == []


@pytest.mark.parametrize("how", ["Unavailable", "Error", "Unassigned"])
def test_what_the_kernel_cannot_tell_is_missing_with_its_reason(how):
    bench = Bench(source=Steady())
    allocator = bench.prepared()
    bench.fake.fail(allocator.groups[LEAD], "llc_occupancy", how)
    samples = series(watching(bench))
    told = {(one.value, one.note) for one in samples if (one.subject, one.metric) == (LEAD, "llc_occupancy")}
    assert told == {(None, event_file.NO_COUNT_WORDS[how])}
    assert None not in values(samples, OTHER, "llc_occupancy")


def test_what_is_not_ready_is_asked_once_more():
    bench = Bench(source=Steady())
    allocator = bench.prepared()
    source = EventFile(bench.fake, f"{allocator.groups[LEAD]}/mon_data/mon_L3_00/llc_occupancy")
    bench.fake.fail(allocator.groups[LEAD], "llc_occupancy", "Unavailable", reads=1)
    assert source.read() == Reading(10 << 20, resumed=True)
    bench.fake.fail(allocator.groups[LEAD], "llc_occupancy", "Unavailable", reads=2)
    assert source.read().number is None
    assert source.read() == Reading(10 << 20)


def test_a_group_that_vanishes_is_missing_and_the_others_go_on():
    bench = Bench(source=Steady())
    allocator = bench.prepared()
    monitor = watching(bench)
    bench.fake.remove(allocator.groups[LEAD])
    samples = series(monitor)
    assert {one.note for one in samples if one.subject == LEAD} == {"ENOENT: the group or its cache is gone"}
    assert None not in values(samples, OTHER, "llc_occupancy")
    monitor.close()


@pytest.mark.parametrize(("number", "name"), [(errno.EIO, "EIO"), (errno.ENODEV, "ENODEV"), (errno.EINVAL, "EINVAL")])
def test_a_refused_read_is_missing_with_its_error(number, name):
    bench = Bench(source=Steady())
    bench.prepared()
    tree = Meddled(bench.fake)
    monitor = watching(bench, tree=tree)
    tree.refuse["read", "llc_occupancy"] = number
    samples = series(monitor)
    assert {one.note.split(":")[0] for one in samples if one.metric == "llc_occupancy"} == {name}
    assert None not in values(samples, LEAD, "mbm_total")


def test_a_member_on_several_caches_has_each_and_the_sum():
    bench = Bench(LAB_TWO_SOCKETS, source=Steady(), cpus=((0, 2), (1,)))
    allocator = bench.prepared()
    monitor = watching(bench)
    samples = series(monitor)
    assert set(values(samples, LEAD, "llc_occupancy")) == {20 << 20}
    assert set(values(samples, f"{LEAD} l3:1", "llc_occupancy")) == {10 << 20}
    assert set(values(samples, OTHER, "llc_occupancy")) == {10 << 20}
    assert f"{OTHER} l3:1" not in {one.subject for one in samples}
    bench.fake.fail(allocator.groups[LEAD], "llc_occupancy", "Error", domain=1)
    samples = series(monitor)
    assert set(values(samples, LEAD, "llc_occupancy")) == {None}
    assert set(values(samples, f"{LEAD} l3:0", "llc_occupancy")) == {10 << 20}


def test_a_part_of_what_a_member_holds_is_never_given_as_the_whole():
    """Caches would count as emptied though one of two could not be read."""
    bench = Bench(LAB_TWO_SOCKETS, source=Steady(), cpus=((0, 2), (1,)))
    allocator = bench.prepared()
    monitor = watching(bench)
    assert monitor.occupancies() == {LEAD: 20 << 20, OTHER: 10 << 20}
    bench.fake.fail(allocator.groups[LEAD], "llc_occupancy", "Error", domain=1)
    assert monitor.occupancies() == {LEAD: None, OTHER: 10 << 20}


def test_fewer_ids_than_members_watch_whom_they_can():
    shape = Shape(ways=0, shareable=0, closids=0, cdp=False, throttle=None, rmids=2)
    bench = Bench(shape, source=Steady())
    monitor = watching(bench)
    assert set(monitor.groups.paths) == {LEAD}
    samples = series(monitor)
    [missing] = [one for one in samples if one.subject == OTHER]
    assert missing.value is None
    assert "ENOSPC, 'Out of RMIDs'" in missing.note
    assert "not watched" in monitor.about()
    monitor.close()


def test_ids_in_limbo_are_waited_for_and_then_done_without(monkeypatch):
    now = iter(range(0, 10000, 5))
    monkeypatch.setattr(groups.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(groups.time, "sleep", lambda _: None)
    shape = Shape(ways=0, shareable=0, closids=0, cdp=False, throttle=None, rmids=3)
    bench = Bench(shape, V6_12, cpus=((0,), (1,), (2,)))
    bench.fake.make("mon_groups/gone")
    bench.fake.remove("mon_groups/gone")
    monitor = bench.monitor()
    monitor.attach(bench.held)
    assert set(monitor.groups.missing) == {OTHER, "third@2"}
    assert "EBUSY" in monitor.groups.missing[OTHER]
    assert len([said for said in bench.said if said.startswith("waiting")]) == 1


def test_a_plain_user_who_may_make_no_group_is_told(monkeypatch):
    bench = Bench(LAB_MONITORING_ONLY)
    with as_user(bench, 1000, monkeypatch):
        monitor = watching(bench)
    assert set(monitor.groups.missing) == {LEAD, OTHER}
    assert "EACCES" in monitor.groups.missing[LEAD]
    assert any("is not watched" in said for said in bench.said)


def test_a_plain_user_takes_the_monitoring_groups_that_root_gave_him(monkeypatch):
    bench = Bench(LAB_MONITORING_ONLY)
    for number in range(2):
        path = f"mon_groups/castmates-1000-{number}"
        bench.fake.make(path)
        for file in ("", "/tasks"):
            bench.fake.chown(path + file, 1000, 1000)
    with as_user(bench, 1000, monkeypatch):
        monitor = watching(bench)
        assert set(monitor.groups.paths.values()) == set(bench.groups())
        monitor.close()
    assert len(bench.groups()) == 2


def test_a_plain_user_is_watched_in_control_groups_that_have_what_the_default_group_has(monkeypatch):
    bench = Bench(source=Steady())
    delegate(bench, 1000, 3)
    bench.fake.write("castmates-1000-0/schemata", "L3:0=f\n")
    with as_user(bench, 1000, monkeypatch):
        monitor = watching(bench)
        assert monitor.groups.paths == {LEAD: "castmates-1000-1", OTHER: "castmates-1000-2"}
        assert values(series(monitor), LEAD, "llc_occupancy")
        monitor.close()
    assert len(bench.groups()) == 3


def test_an_error_in_the_thread_is_not_lost(monkeypatch):
    bench = Bench()
    bench.prepared()
    monitor = watching(bench)
    monkeypatch.setattr(Series, "look", lambda _: 1 / 0)
    monitor.start()
    with pytest.raises(ZeroDivisionError):
        monitor.stop()


def test_a_series_does_not_end_with_a_rate_over_a_moment():
    bench = Bench(source=Steady())
    bench.prepared()
    monitor = watching(bench, rate=1 / 3600)
    samples = series(monitor, looks=1)
    assert values(samples, LEAD, "llc_occupancy") == [10 << 20]
    assert values(samples, LEAD, "mbm_total") == []


def test_the_thread_ends_with_its_window():
    bench = Bench()
    bench.prepared()
    monitor = watching(bench)
    series(monitor)
    assert "castmates-monitor" not in {thread.name for thread in threading.enumerate()}


def test_files_stay_open_and_are_read_with_one_call(tmp_path):
    here = trees.record(tmp_path, trees.SNC)
    source = EventFile(KernelTree(here), "mon_data/mon_L3_00/llc_occupancy")
    assert [source.read() for _ in range(5)] == [Reading(5)] * 5
    assert source.reads == 6
    before = len(list(Path("/proc/self/fd").iterdir()))
    source.close()
    source.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 1
    (here / "mon_data/mon_L3_00/llc_occupancy").unlink()
    assert source.read() == Reading(None, "ENOENT: the group or its cache is gone")


def test_sub_numa_clusters_are_read_as_the_sum_that_the_kernel_forms(tmp_path):
    here = trees.record(tmp_path, trees.SNC)
    bench = Bench()
    monitor = bench.monitor(tree=KernelTree(here))
    found = monitor._series_of(LEAD, "", {1})
    assert [one.file.read() for one in found] == [Reading(5)]
    assert "sub-NUMA clusters" in monitor.about()


def test_a_fake_that_only_allocates_has_no_share_to_watch():
    shape = Shape(events=(), rmids=0)
    bench = Bench(shape)
    bench.prepared()
    monitor = watching(bench)
    assert set(monitor.groups.missing) == {LEAD, OTHER}


def test_a_rate_on_two_caches_is_no_total_while_one_of_them_begins_again():
    bench = Bench(LAB_TWO_SOCKETS, source=Steady(), cpus=((0, 2), (1,)))
    allocator = bench.prepared()
    monitor = watching(bench)
    assert not [one for one in monitor._look() if one.metric == "mbm_total"]
    bench.fake.fail(allocator.groups[LEAD], "mbm_total_bytes", "Unavailable", domain=1, reads=2)
    for note in (event_file.NO_COUNT_WORDS["Unavailable"], "no rate yet", ""):
        looked = {one.subject: one for one in monitor._look() if one.metric == "mbm_total"}
        assert (looked[LEAD].value is None) == bool(note)
        assert note in looked[LEAD].note
        assert looked[f"{LEAD} l3:0"].value > 0
        assert looked[OTHER].value > 0


@pytest.mark.parametrize(("caches", "why"), [({0: 5, 1: 0}, "counts nothing"), (None, "cannot be read")])
def test_a_member_whose_caches_are_not_counted_is_told(caches, why, monkeypatch):
    bench = Bench(source=Steady())
    bench.prepared()
    bench.domains = caches or bench.domains
    tree = Meddled(bench.fake)
    if caches is None:
        monkeypatch.setattr(tree, "names", lambda path: unreadable(bench.fake, path))
    monitor = watching(bench, tree=tree)
    assert why in monitor.groups.missing[LEAD]
    assert any(LEAD in said for said in bench.said)
    assert why in next(one.note for one in series(monitor, looks=1) if one.subject == LEAD)


def unreadable(fake, path):
    if path.endswith("mon_data"):
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    return fake.names(path)
