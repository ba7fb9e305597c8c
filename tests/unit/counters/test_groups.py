"""Opening events in groups, against a kernel of the test's own that refuses for this reason or that."""

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from castmates.counters.events import groups as groups_module
from castmates.counters.events.groups import open_groups
from castmates.counters.events.resolving import Event
from castmates.linux import perf_event
from castmates.linux.perf_event import (
    AGAIN,
    EXCLUDE_HV,
    EXCLUDE_KERNEL,
    EXCLUDE_USER,
    HARDWARE,
    RAW,
    SOFTWARE,
    Attr,
    Target,
    read_group,
)


def event(name, *attrs):
    return Event(name, name, "set", attrs, "perf")


CYCLES, MISSES, FAULTS = (
    event("cycles", Attr(HARDWARE, 0)),
    event("misses", Attr(HARDWARE, 3)),
    event("faults", Attr(SOFTWARE, 2)),
)
HERE, THERE = Target(-1, 0), Target(-1, 1)


class Kernel:
    """Opens what `refuses` gives no errno for; its descriptors are real ones, of nothing."""

    def __init__(self, refuses=lambda *_: 0):
        self.refuses, self.asked = refuses, []

    def __call__(self, attr, target, leader, bits):
        self.asked.append((attr, target, leader, bits))
        if code := self.refuses(attr, target, leader):
            raise OSError(code, os.strerror(code))
        return os.open("/dev/null", os.O_RDONLY)


def descriptors_of_nothing():
    """How many are open: others are opened by whatever else runs in this process."""
    targets = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them is closed by now
            targets.append(str(one.readlink()))
    return targets.count("/dev/null")


def opened(events, targets, refuses=lambda *_: 0, resting=False):
    kernel = Kernel(refuses)
    found = open_groups(events, targets, resting, kernel)
    groups = [(group.target, group.names) for group in found.groups]
    found.close()
    return kernel, groups, found


def test_events_of_one_unit_are_a_group_on_every_target_which_rests_with_its_leader():
    kernel, groups, _ = opened([CYCLES, FAULTS, MISSES], [HERE, THERE], resting=True)
    assert groups == [
        (HERE, ["cycles", "misses"]),
        (THERE, ["cycles", "misses"]),
        (HERE, ["faults"]),
        (THERE, ["faults"]),
    ]
    assert [bits for _, _, leader, bits in kernel.asked] == [1, 0, 1, 0, 1, 1]
    assert [leader < 0 for _, _, leader, _ in kernel.asked] == [True, False, True, False, True, True]


def test_the_kernels_clocks_are_never_grouped_with_others():
    """Beside them a CPU's events stay 0 without a word (Linux 6.18)."""
    clock = event("task-clock", Attr(SOFTWARE, 1))
    _, groups, _ = opened([clock, FAULTS], [HERE])
    assert groups == [(HERE, ["task-clock"]), (HERE, ["faults"])]


@pytest.mark.parametrize(
    ("code", "why"),
    [(errno.ENOENT, "not supported: this processor"), (errno.EINVAL, "not supported: the kernel does not count"),
     (errno.EACCES, "not counted: perf is refused"), (errno.ENOSYS, "not supported: this kernel"),
     (errno.EBUSY, "not counted: perf_event_open failed")],
)  # fmt: skip
def test_a_refused_leader_leaves_the_others_and_says_why(code, why):
    _, groups, found = opened([CYCLES, MISSES], [HERE], lambda attr, *_: code if attr.config == 0 else 0)
    assert groups == [(HERE, ["misses"])]
    assert found.refused.keys() == {"cycles"}
    assert str(found.refused["cycles"]).startswith(why)


def test_what_never_fits_beside_the_others_has_a_group_of_its_own():
    _, groups, found = opened([CYCLES, MISSES], [HERE], lambda _, __, leader: errno.EINVAL if leader >= 0 else 0)
    assert groups == [(HERE, ["cycles"]), (HERE, ["misses"])]
    assert not found.refused


def test_without_the_kernels_part_where_that_is_refused_but_never_for_what_happens_there():
    def refuses(attr, *_):
        return 0 if attr.exclude & EXCLUDE_KERNEL else errno.EACCES

    switches = event("context-switches", Attr(SOFTWARE, 3))
    kernels_part = event("cycles:k", Attr(HARDWARE, 0, exclude=EXCLUDE_USER | EXCLUDE_HV))
    _, groups, found = opened([CYCLES, switches, kernels_part], [HERE], refuses)
    assert groups == [(HERE, ["cycles"])]
    assert "perf is refused" in found.refused["cycles:k"].why
    assert found.notes == {"cycles": "user mode only"}
    assert "perf is refused" in found.refused["context-switches"].why


def test_on_each_cpu_its_own_kind_of_core_counts_and_a_lack_is_told():
    both = event("cycles", Attr(HARDWARE, RAW << 32), Attr(HARDWARE, 10 << 32))

    def refuses(attr, target, _):
        return 0 if attr.unit == (RAW if target is HERE else 10) else errno.ENOENT

    _, groups, found = opened([both], [HERE, THERE], refuses)
    assert groups == [(HERE, ["cycles"]), (THERE, ["cycles"])]
    assert not found.refused
    assert not found.notes
    _, _, found = opened([event("p-only", Attr(HARDWARE, RAW << 32))], [HERE, THERE], refuses)
    assert found.notes == {"p-only": "not on CPU 1"}


def test_a_member_that_has_ended_is_not_counted():
    _, _, found = opened([CYCLES], [HERE], lambda *_: errno.ESRCH)
    assert str(found.refused["cycles"]).startswith("not counted: the member had ended")
    _, _, found = opened([CYCLES], [])
    assert str(found.refused["cycles"]).startswith("not counted: the member had ended")


def test_too_many_files_refuse_all_and_leave_none_open():
    def refuses(_, target, leader):
        return errno.EMFILE if target is THERE and leader >= 0 else 0

    before = descriptors_of_nothing()
    found = open_groups([CYCLES, MISSES, FAULTS], [HERE, THERE], False, Kernel(refuses))
    assert found.groups == []
    assert set(found.refused) == {"cycles", "misses", "faults"}
    assert all(str(why).startswith("not counted: too many files are open") for why in found.refused.values())
    assert descriptors_of_nothing() == before


@pytest.mark.parametrize("code", [errno.EACCES, errno.EBUSY])
def test_who_is_refused_on_some_targets_is_in_no_sum(code, monkeypatch):
    def refuses(attr, target, _):
        return code if attr.config == 0 and target is THERE else 0

    found = open_groups([CYCLES, MISSES], [HERE, THERE], False, Kernel(refuses))
    monkeypatch.setattr(groups_module, "read_group", lambda _, events: [10, 10, *([7] * events)])
    assert {name: one.count for name, one in found.read().items()} == {"misses": 14}
    assert str(found.refused["cycles"]).startswith("not counted: ")
    assert not found.notes
    found.close()


def test_what_cannot_be_read_on_one_target_is_in_no_sum(monkeypatch):
    found = open_groups([CYCLES, FAULTS], [HERE, THERE], False, Kernel())
    broken = found.groups[1].leader  # the cycles of one of them
    monkeypatch.setattr(groups_module, "read_group", lambda fd, _: None if fd == broken else [10, 10, 7])
    assert {name: one.count for name, one in found.read().items()} == {"faults": 14}
    found.close()


def test_a_group_is_read_again_while_somebody_who_inherits_it_is_born(monkeypatch):
    """The kernel answers ECHILD for the moment in which a new thread has a part of a group."""
    answers = [ChildProcessError] * 3 + [bytes(32)]

    def answer(*_):
        found = answers.pop(0) if answers else ChildProcessError
        if isinstance(found, bytes):
            return found
        answered.append(found)
        raise found

    answered = []
    monkeypatch.setattr(perf_event.os, "read", answer)
    assert read_group(0, 1) == [0, 0, 0]
    assert read_group(0, 1) is None
    assert len(answered) == 3 + AGAIN
