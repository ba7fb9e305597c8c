"""Members get what a partition gives them, proved by reading back; everything is put back as it was found."""

import errno
import os
import re
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.linux.owner import resctrl_group_name
from castmates.machine.resctrl_state import UNTHROTTLED_MIBPS
from castmates.protocols import Held
from castmates.rdt.fake import (
    AMD_CHIPLETS,
    HASWELL,
    LAB,
    LAB_NO_THROTTLE,
    LAB_TWO_SOCKETS,
    V6_1,
    V6_1_90,
    V6_12,
    V7_2,
    Shape,
)
from castmates.rdt.resctrl import groups
from castmates.rdt.resctrl.wanted_schemata import parse
from castmates.study.spec import REST, Share
from tests.unit.rdt import owned
from tests.unit.rdt.fakes import Bench

KERNELS = [V6_1, V6_12, V7_2]
LEAD, OTHER = "lead@0", "other@1"


class Meddled:
    """A tree between the driver and the fake, in which something goes wrong or is counted."""

    def __init__(self, fake):
        self.fake, self.calls, self.refuse, self.shows, self.texts = fake, [], {}, {}, []

    def _try(self, call, path):
        self.calls.append((call, path))
        for (wanted, pattern), number in self.refuse.items():
            if call == wanted and re.search(pattern, path):
                raise OSError(number, os.strerror(number))

    def read(self, path):
        self._try("read", path)
        return self.shows.get(path) or self.fake.read(path)

    def write(self, path, text):
        self._try("write", path)
        self.texts.append(text)
        self.fake.write(path, text)

    def remove(self, path):
        self._try("remove", path)
        self.fake.remove(path)

    def __getattr__(self, name):
        return getattr(self.fake, name)


def masks(bench, path, line="L3"):
    return parse(bench.fake.read(f"{path}/schemata".lstrip("/")))[line]


@pytest.mark.parametrize("kernel", KERNELS)
def test_everybody_begins_with_what_he_was_found_with_in_a_group_of_his_own(kernel):
    bench = Bench(kernel=kernel)
    bench.fake.write("schemata", "L3:0=ff\nMB:0=50\n")  # somebody has set the default group
    allocator = bench.prepared()
    assert bench.groups() == list(allocator.groups.values()) == [resctrl_group_name(0), resctrl_group_name(1)]
    for name, path in allocator.groups.items():
        assert masks(bench, path) == {0: 0xFF}
        assert masks(bench, path, "MB") == {0: 50}
        assert sorted(map(int, bench.fake.read(f"{path}/tasks").split())) == sorted(
            bench.tasks.threads([bench.held[name]])[bench.held[name].pid]
        )
    assert masks(bench, "") == {0: 0xFF}
    assert allocator.misplaced() == []


def shared_machine():
    """A Sapphire Rapids divided as goresctrl does it: a guaranteed class with a task, and a narrowed default class."""
    bench = Bench(owned.SAPPHIRE_RAPIDS, cpus=((0,), (1,)))
    bench.fake.make("goresctrl.Guaranteed")
    bench.fake.write("goresctrl.Guaranteed/schemata", "L3:0=7f00;1=7f00\n")
    bench.fake.write("goresctrl.Guaranteed/tasks", f"{bench.fake.processes.fork()}\n")
    bench.fake.write("schemata", "L3:0=ff;1=ff\nMB:0=50;1=50\nL2:0=ff\n")
    return bench, bench.fake.read("goresctrl.Guaranteed/schemata"), bench.fake.read("schemata")


def test_what_an_administrator_narrowed_is_never_widened():
    bench, theirs, found = shared_machine()
    allocator = bench.prepared()
    for name, path in allocator.groups.items():
        assert [masks(bench, path, line)[0] for line in ("L3", "MB", "L2")] == [0xFF, 50, 0xFF], name
    allocator.apply([Share(member=LEAD, ways=0xF), Share(member=OTHER, ways=0xF0), Share(member=REST, ways=0x3F0)])
    assert masks(bench, "")[0] == 0xF0
    assert masks(bench, "", "MB")[0] == 50
    assert list(allocator.processor().shared.values()) == [[]]
    for member, ways, throttle in ((LEAD, 0x7C00, None), (LEAD, 0x1F0, None), (OTHER, 0x3, 60), (REST, 0x7C00, None)):
        with pytest.raises(CastmatesError, match="class") as caught:
            allocator.apply([Share(member=member, ways=ways, bandwidth=throttle)])
        assert str(caught.value).count(". ") == 0
        assert masks(bench, allocator.groups[LEAD])[0] == 0xF  # nothing was written
    allocator.restore()
    assert bench.fake.read("goresctrl.Guaranteed/schemata") == theirs
    assert bench.fake.read("schemata") == found


def test_beyond_the_site_members_have_everything_nobody_else_does_and_who_shares_their_ways_is_named():
    bench, _, found = shared_machine()
    allocator = bench.prepared(beyond_site=True)
    for path in allocator.groups.values():
        assert (masks(bench, path)[0], masks(bench, path, "MB")[0]) == (0x7FFF, 100)
    apart = [Share(member=LEAD, ways=0xF), Share(member=OTHER, ways=0xF0)]
    over = [Share(member=LEAD, ways=0x7C00), Share(member=OTHER, ways=0x3F), Share(member=REST, ways=0x3FF)]
    for shares in (apart, over):
        allocator.apply(shares)
    assert masks(bench, "")[0] == 0xFF
    assert allocator.processor().shared == {tuple(apart): [], tuple(over): ["goresctrl.Guaranteed"]}
    allocator.restore()
    assert bench.fake.read("schemata") == found


def test_who_empties_caches_reaches_what_members_may_fill_also_from_a_cpu_of_anothers_group():
    bench = Bench(owned.SAPPHIRE_RAPIDS, cpus=((0,), (1,)))
    bench.fake.make("theirs")
    bench.fake.write("theirs/schemata", "L3:0=3;1=3\n")
    bench.fake.write("theirs/cpus_list", "2\n")
    allocator = bench.prepared()
    helper = Held(bench.tasks.launch(threads=1), (2,))
    before = bench.groups()
    allocator.serve([Held(bench.tasks.launch(), (3,))])
    assert bench.groups() == before, "one that reaches them needs no group"
    allocator.serve([helper])
    (path,) = set(bench.groups()) - set(before)
    assert masks(bench, path) == {0: 0x7FFF, 1: 0x7FFF}
    assert sorted(map(int, bench.fake.read(f"{path}/tasks").split())) == sorted(
        bench.tasks.threads([helper])[helper.pid]
    )
    allocator.apply([Share(member=LEAD, ways=0xF), Share(member=OTHER, ways=0xF0)])
    assert masks(bench, path)[0] == 0x7FFF
    assert allocator.misplaced() == []
    allocator.restore()
    assert bench.groups() == ["theirs"]
    assert bench.said == []


def test_who_empties_caches_has_no_more_than_members_and_where_no_class_is_left_that_is_said():
    bench, *_ = shared_machine()
    bench.fake.make("theirs")
    bench.fake.write("theirs/schemata", "L3:0=3;1=3\n")
    bench.fake.write("theirs/cpus_list", "2\n")
    allocator = bench.prepared()
    while True:
        try:
            bench.fake.make(f"more{len(bench.groups())}")
        except OSError:
            break
    held, before = Held(bench.tasks.launch(), (2,)), bench.groups()
    allocator.serve([held])
    assert bench.groups() == before
    assert "what empties caches reaches fewer ways than the members" in bench.said[-1]
    bench.fake.remove(before[-1])
    allocator.serve([held])
    (path,) = set(bench.groups()) - set(before)
    assert (masks(bench, path)[0], masks(bench, path, "MB")[0]) == (0xFF, 50)


def test_a_member_stays_in_the_class_of_its_group_or_of_its_cpus():
    bench, _, _ = shared_machine()
    for tid in bench.tasks.threads([bench.held[LEAD]])[bench.held[LEAD].pid]:
        bench.fake.write("goresctrl.Guaranteed/tasks", f"{tid}\n")
    bench.fake.make("batch")
    bench.fake.write("batch/schemata", "L3:0=3f;1=3f\nMB:0=20;1=20\n")
    bench.fake.write("batch/cpus_list", "1\n")
    allocator = bench.prepared()
    assert (masks(bench, allocator.groups[LEAD])[0], masks(bench, allocator.groups[LEAD], "MB")[0]) == (0x7F00, 100)
    assert (masks(bench, allocator.groups[OTHER])[0], masks(bench, allocator.groups[OTHER], "MB")[0]) == (0x3F, 20)


@pytest.mark.parametrize("kernel", KERNELS)
def test_shares_are_given_and_taken_back(kernel):
    bench = Bench(kernel=kernel)
    allocator = bench.prepared()
    assert allocator.apply([Share(member=LEAD, ways=0xF), Share(member=OTHER, ways=0xFF0)])
    assert allocator.read_back() == {LEAD: "MB:0=100 L3:0=f", OTHER: "MB:0=100 L3:0=ff0"}
    assert not allocator.apply([Share(member=LEAD, ways=0x1F), Share(member=OTHER, ways=0xFF0)])
    assert allocator.apply([Share(member=LEAD, ways=0xF8), Share(member=OTHER, ways=0xFF0)])  # moved: lost the low ones
    assert not allocator.apply([])
    assert set(allocator.read_back().values()) == {"MB:0=100 L3:0=fff"}


def test_a_scene_costs_one_write_and_a_look_before_and_after_for_each_group():
    bench = Bench()
    tree = Meddled(bench.fake)
    allocator = bench.prepared(tree)
    tree.calls.clear()
    allocator.apply([Share(member=LEAD, ways=0xF, bandwidth=20), Share(member=OTHER, ways=0xFF0)])
    paths = [f"{path}/schemata" for path in allocator.groups.values()]
    assert sorted(tree.calls) == sorted([(call, path) for call in ("read", "write", "read") for path in paths])


def test_a_mask_holds_where_the_member_has_cpus_and_nowhere_else():
    bench = Bench(LAB_TWO_SOCKETS, cpus=((0,), (0, 2)))
    allocator = bench.prepared()
    allocator.apply([Share(member=LEAD, ways=0x3), Share(member=OTHER, ways=0xF0)])
    assert masks(bench, allocator.groups[LEAD]) == {0: 0x3, 1: 0xFFF}
    assert masks(bench, allocator.groups[OTHER]) == {0: 0xF0, 1: 0xF0}


def test_a_throttle_holds_on_every_socket_of_its_member():
    bench = Bench(LAB_TWO_SOCKETS, cpus=((0, 2), (1,)))
    allocator = bench.prepared()
    allocator.apply([Share(member=LEAD, bandwidth=50), Share(member=OTHER, bandwidth=30)])
    assert masks(bench, allocator.groups[LEAD], "MB") == {0: 50, 1: 50}
    assert masks(bench, allocator.groups[OTHER], "MB") == {0: 30, 1: 100}


def test_gaps_in_the_ids_holes_in_the_masks_and_absolute_bandwidth():
    bench = Bench(AMD_CHIPLETS, V6_12, cpus=((17,), (2, 3)))
    allocator = bench.prepared()
    allocator.apply([Share(member=LEAD, ways=0xA005, bandwidth=64), Share(member=OTHER, ways=0)])
    assert masks(bench, allocator.groups[LEAD])[16] == 0xA005
    assert masks(bench, allocator.groups[LEAD], "MB")[16] == 64
    assert masks(bench, allocator.groups[LEAD])[1] == 0xFFFF
    assert masks(bench, allocator.groups[OTHER])[1] == 0
    assert "16=40" not in allocator.read_back()[LEAD]  # bandwidth is decimal, masks are not


def test_the_rest_of_the_machine_is_bounded_on_the_members_caches_and_put_back():
    bench = Bench(LAB_TWO_SOCKETS, cpus=((0,),))
    bench.fake.write("schemata", "L3:0=ff0;1=ff0\nMB:0=70\n")
    before = bench.fake.read("schemata")
    allocator = bench.prepared()
    assert allocator.apply([Share(member=LEAD, ways=0xF0), Share(member=REST, ways=0xF0F)])
    assert masks(bench, "") == {0: 0xF00, 1: 0xFF0}
    assert masks(bench, "", "MB") == {0: 70, 1: 100}
    assert parse(allocator.read_back()[REST])["L3"] == {0: 0xF00, 1: 0xFF0}
    allocator.apply([Share(member=LEAD, ways=0xF0)])  # a scene that sets nothing for the rest
    assert bench.fake.read("schemata") == before
    allocator.apply([Share(member=REST, ways=0x30)])
    allocator.restore()
    assert bench.fake.read("schemata") == before
    assert bench.groups() == []


def test_the_default_group_is_not_written_where_no_partition_names_it():
    bench = Bench()
    tree = Meddled(bench.fake)
    allocator = bench.prepared(tree)
    allocator.apply([Share(member=LEAD, ways=1)])
    allocator.restore()
    assert ("write", "schemata") not in tree.calls


def test_code_and_data():
    bench = Bench(options="cdp")
    allocator = bench.prepared()
    allocator.apply([Share(member=LEAD, ways=0xC, code=0x30), Share(member=OTHER, ways=0xF0)])
    assert (masks(bench, allocator.groups[LEAD], "L3DATA"), masks(bench, allocator.groups[LEAD], "L3CODE")) == (
        {0: 0xC},
        {0: 0x30},
    )
    assert masks(bench, allocator.groups[OTHER], "L3CODE") == {0: 0xF0}
    with pytest.raises(CastmatesError, match="without cdp"):
        Bench().prepared().apply([Share(member=LEAD, ways=0xC, code=0x30)])


@pytest.mark.parametrize("kernel", [V6_1, V6_1_90, V6_12])
def test_mebibytes_a_second_survive_kernels_that_round_and_cut_them(kernel):
    bench = Bench(kernel=kernel, options="mba_MBps")
    before = bench.fake.read("schemata")
    allocator = bench.prepared()
    allocator.apply([Share(member=LEAD, bandwidth=1537)])
    assert masks(bench, allocator.groups[LEAD], "MB") == {0: 1540}
    assert "a throttle of 1537 becomes 1540: this machine has no step between" in bench.said
    allocator.apply([])
    assert masks(bench, allocator.groups[LEAD], "MB") == {0: UNTHROTTLED_MIBPS}
    assert "MB:0=4294967200" in bench.fake.read(f"{allocator.groups[LEAD]}/schemata").replace(" ", "")
    allocator.restore()
    assert bench.fake.read("schemata") == before


@pytest.mark.parametrize("kernel", [V6_1_90, V6_12])
def test_groups_of_root_are_left_without_a_throttle_as_they_were(kernel, monkeypatch):
    bench = Bench(kernel=kernel, options="mba_MBps")
    delegate(bench, 1000, 2)
    with as_user(bench, 1000, monkeypatch):
        allocator = bench.prepared()
        allocator.apply([Share(member=LEAD, bandwidth=500)])
        allocator.restore()
    for number in range(2):
        assert masks(bench, f"castmates-1000-{number}", "MB") == {0: UNTHROTTLED_MIBPS}
    assert not [said for said in bench.said if "changed by somebody else" in said]


def test_a_throttle_is_written_only_where_it_changes():
    """Kernels and processors round throttles: a study of masks alone does not touch them."""
    bench = Bench()
    tree = Meddled(bench.fake)
    allocator = bench.prepared(tree)
    allocator.apply([Share(member=LEAD, ways=0xF)])
    assert not [text for text in tree.texts if "MB" in text]
    allocator.apply([Share(member=LEAD, bandwidth=50)])
    allocator.apply([])
    assert [text.split("\n")[0] for text in tree.texts if "MB" in text] == ["MB:0=50", "MB:0=100"]


def test_a_throttle_between_two_steps_is_rounded_up_and_said_once():
    bench = Bench()
    allocator = bench.prepared()
    for _ in range(2):
        allocator.apply([Share(member=LEAD, bandwidth=55)])
    assert masks(bench, allocator.groups[LEAD], "MB") == {0: 60}
    assert len([said for said in bench.said if "55 becomes 60" in said]) == 1


def test_what_the_machine_lacks_is_a_sentence():
    with pytest.raises(CastmatesError, match="no throttle of memory bandwidth"):
        Bench(LAB_NO_THROTTLE).prepared().apply([Share(member=LEAD, bandwidth=50)])
    with pytest.raises(CastmatesError, match="nobody@9, which has no group"):
        Bench().prepared().apply([Share(member="nobody@9", ways=1)])
    bench = Bench(LAB_TWO_SOCKETS)
    bench.held[LEAD] = Held(bench.held[LEAD].pid, (77,))
    with pytest.raises(CastmatesError, match="CPU 77 of lead@0 is in no last-level cache"):
        bench.prepared()


@pytest.mark.parametrize(
    ("shape", "mask", "why"),
    [
        (LAB, 0x5, "non-consecutive 1-bits"),
        (LAB, 0, "out of range"),
        (LAB, 0x1000, "out of range"),
        (HASWELL, 0x1, "2 bits|out of range"),
    ],
)
def test_a_mask_that_the_kernel_refuses_is_told_in_its_words(shape, mask, why):
    bench = Bench(shape)
    allocator = bench.prepared()
    with pytest.raises(CastmatesError, match=f"(?i)give lead@0 .*L3:0={mask:x}.*EINVAL, '.*({why})"):
        allocator.apply([Share(member=LEAD, ways=mask)])
    allocator.restore()
    assert bench.groups() == []


def test_a_mask_that_the_processor_changes_is_an_error_that_says_both():
    bench = Bench(LAB_TWO_SOCKETS)
    tree = Meddled(bench.fake)
    allocator = bench.prepared(tree)
    path = f"{allocator.groups[LEAD]}/schemata"
    tree.shows[path] = "MB:0=100;1=100\nL3:0=c00;1=fff\n"
    with pytest.raises(CastmatesError, match="L3:0=800 was asked and L3:0=c00 is there"):
        allocator.apply([Share(member=LEAD, ways=0x800)])


def test_an_exclusive_group_of_others_is_named():
    bench = Bench()
    bench.fake.write("schemata", "L3:0=ff0\n")
    bench.fake.make("COS1")
    bench.fake.write("COS1/schemata", "L3:0=f\n")
    bench.fake.write("COS1/mode", "exclusive\n")
    with pytest.raises(CastmatesError, match=r"Overlaps with exclusive group.*COS1 \(made by pqos.*keeps ways"):
        bench.prepared(beyond_site=True)


def test_more_members_than_classes():
    shape = Shape(closids=3, throttle=None)
    bench = Bench(shape, cpus=((0,), (1,), (2,)))
    allocator = bench.allocator()
    with pytest.raises(CastmatesError, match=r"ENOSPC, 'Out of CLOSIDs'.*no class or monitoring id for one more"):
        allocator.prepare(bench.held)
    allocator.restore()
    assert bench.groups() == []


def test_classes_that_others_hold_are_named():
    bench = Bench(Shape(closids=3, throttle=None))
    bench.fake.make("COS1")
    bench.fake.make("pod_7")
    with pytest.raises(
        CastmatesError, match=r"ENOSPC.*COS1 \(made by pqos.*empty\), pod_7 \(made by Kubernetes, empty"
    ):
        bench.prepared()


def test_a_monitoring_id_in_limbo_is_waited_for(monkeypatch):
    monkeypatch.setattr(groups.time, "sleep", lambda _: bench.fake.advance(1))
    bench = Bench(Shape(rmids=3), V6_12)
    bench.fake.make("gone")
    bench.fake.remove("gone")  # its id is in limbo until the kernel looks
    allocator = bench.prepared()
    assert len(bench.groups()) == 2
    assert [said for said in bench.said if "limbo" in said] == bench.said[:1]
    allocator.restore()


def test_limbo_that_does_not_end_is_an_error(monkeypatch):
    now = iter(range(0, 10000, 5))
    monkeypatch.setattr(groups.time, "sleep", lambda _: None)
    monkeypatch.setattr(groups.time, "monotonic", lambda: next(now))
    bench = Bench(Shape(rmids=3), V6_12)
    for name in ("a", "b"):
        bench.fake.make(name)
    for name in ("a", "b"):
        bench.fake.remove(name)
    with pytest.raises(CastmatesError, match=r"EBUSY, 'Out of RMIDs'.*in limbo.*max_threshold_occupancy"):
        bench.prepared()


def test_a_member_that_goes_on_forking_is_caught():
    bench = Bench()
    leader = bench.held[LEAD].pid
    tree = Meddled(bench.fake)
    born = []

    def write(path, text):
        if path.endswith("/tasks") and len(born) < 3:  # the leader is not there yet, and forks meanwhile
            born.append(bench.tasks.fork(leader))
        bench.fake.write(path, text)

    tree.write = write
    allocator = bench.prepared(tree)
    inside = set(map(int, bench.fake.read(f"{allocator.groups[LEAD]}/tasks").split()))
    assert set(born) <= inside
    assert bench.tasks.fork(leader) in set(map(int, bench.fake.read(f"{allocator.groups[LEAD]}/tasks").split()))


def test_a_thread_that_ends_while_it_is_moved_is_no_error():
    bench = Bench()
    tree = Meddled(bench.fake)
    [*_, last] = bench.tasks.threads([bench.held[LEAD]])[bench.held[LEAD].pid]

    def write(path, text):
        if text == f"{last}\n":
            bench.fake.processes.exit(last)
        bench.fake.write(path, text)

    tree.write = write
    assert bench.prepared(tree).misplaced() == []


@pytest.mark.parametrize("shows_places", [True, False])
def test_a_thread_elsewhere_is_found(shows_places):
    bench = Bench(shows_places=shows_places)
    allocator = bench.prepared()
    assert allocator.misplaced() == []
    [*_, last] = bench.tasks.threads([bench.held[OTHER]])[bench.held[OTHER].pid]
    bench.fake.write("tasks", f"{last}\n")
    where = "the default group" if shows_places else "another group"
    assert allocator.misplaced() == [
        f"other@1 has a thread outside of its group {allocator.groups[OTHER]}: {last} (in {where})"
    ]
    bench.fake.processes.exit(last)
    assert allocator.misplaced() == []


def test_a_group_that_somebody_removes():
    bench = Bench()
    allocator = bench.prepared()
    bench.fake.remove(allocator.groups[LEAD])
    assert allocator.read_back()[LEAD] == ""
    assert "(in the default group)" in allocator.misplaced()[0]
    with pytest.raises(CastmatesError, match=r"ENOENT.*the group is gone"):
        allocator.apply([Share(member=LEAD, ways=1)])
    allocator.restore()
    assert bench.groups() == []


def test_unmounted_under_our_feet():
    bench = Bench()
    allocator = bench.prepared()
    allocator.apply([Share(member=REST, ways=1)])
    bench.fake.umount()
    assert set(allocator.read_back().values()) == {""}
    assert "not mounted any more" in allocator.misplaced()[0]
    allocator.restore()
    assert bench.released == 1


def test_what_somebody_else_has_changed_is_left_and_told():
    bench = Bench()
    allocator = bench.prepared()
    allocator.apply([Share(member=REST, ways=0xF)])
    bench.fake.write("schemata", "L3:0=7\n")
    allocator.restore()
    assert masks(bench, "") == {0: 0x7}
    assert any("changed by somebody else" in said for said in bench.said)


def test_a_share_that_is_refused_for_one_leaves_nothing_of_the_others_behind():
    bench = Bench()
    allocator = bench.prepared()
    with pytest.raises(CastmatesError, match="EINVAL"):
        allocator.apply([Share(member=REST, ways=0x3), Share(member=LEAD, ways=0x505)])
    allocator.restore()
    assert masks(bench, "") == {0: 0xFFF}
    assert bench.groups() == []


def test_restore_goes_on_where_one_group_cannot_be_removed():
    bench = Bench()
    tree = Meddled(bench.fake)
    allocator = bench.prepared(tree)
    stuck = allocator.groups[LEAD]
    tree.refuse["remove", re.escape(stuck)] = errno.EBUSY
    allocator.restore()
    allocator.restore()
    assert bench.groups() == [stuck]
    assert any(stuck in said and "EBUSY" in said for said in bench.said)
    assert bench.released == 1


@contextmanager
def as_user(bench, uid, monkeypatch):
    """Let the driver act as a plain user; members are his."""
    me = bench.fake.processes.fork(uid=uid)
    for held in bench.held.values():
        for pid in bench.tasks.families[held.pid]:
            for tid in bench.fake.processes.threads(pid):
                bench.fake.processes.thread(tid).uid = uid
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    with bench.fake.acting(me):
        yield


def delegate(bench, uid, count, mask="L3:0=fff\n"):
    for number in range(count):
        path = f"castmates-{uid}-{number}"
        bench.fake.make(path)
        bench.fake.write(f"{path}/schemata", mask)
        for file in ("", "/tasks", "/schemata"):
            bench.fake.chown(path + file, uid, uid)


def test_a_plain_user_takes_the_groups_that_root_gave_him(monkeypatch):
    bench = Bench()
    delegate(bench, 1000, 3)
    bench.fake.write("castmates-1000-0/tasks", "2\n")  # somebody lives there
    with as_user(bench, 1000, monkeypatch):
        allocator = bench.prepared()
        assert list(allocator.groups.values()) == ["castmates-1000-1", "castmates-1000-2"]
        allocator.apply([Share(member=LEAD, ways=0x3)])
        assert masks(bench, "castmates-1000-1") == {0: 0x3}
        assert allocator.misplaced() == []
        allocator.restore()
    assert masks(bench, "castmates-1000-1") == {0: 0xFFF}
    assert bench.groups() == ["castmates-1000-0", "castmates-1000-1", "castmates-1000-2"]


def test_a_plain_user_may_not_bound_the_rest_of_the_machine(monkeypatch):
    bench = Bench()
    delegate(bench, 1000, 2)
    with as_user(bench, 1000, monkeypatch):
        allocator = bench.prepared()
        with pytest.raises(CastmatesError, match=r"EACCES.*grant --default-group.*rest: all"):
            allocator.apply([Share(member=LEAD, ways=0x3), Share(member=REST, ways=0xFF0)])
        bench.said.clear()
        allocator.restore()
    assert bench.said == []
    assert masks(bench, "") == {0: 0xFFF}


def test_a_plain_user_with_too_few_groups_or_none(monkeypatch):
    bench = Bench()
    delegate(bench, 1000, 1)
    delegate(bench, 1001, 4)
    with (
        as_user(bench, 1000, monkeypatch),
        pytest.raises(
            CastmatesError, match=r"EACCES.*gave this user 1 empty groups and 2 are needed.*castmates doctor --grant"
        ),
    ):
        bench.prepared()
    other = Bench()
    with as_user(other, 1000, monkeypatch), pytest.raises(CastmatesError, match=r"EACCES.*this user may not"):
        other.prepared()


def test_about_names_everything():
    bench = Bench()
    bench.fake.make("somebody")
    allocator = bench.prepared()
    said = allocator.about()
    assert said["groups"] == f"lead@0: {resctrl_group_name(0)}, other@1: {resctrl_group_name(1)}"
    assert said["groups of others"] == "somebody (empty)"
    assert said["throttle of siblings"] == "max"
    assert said["ways shared with I/O"] == "c00"


RUNS = st.integers(0, 11).flatmap(lambda low: st.integers(1, 12 - low).map(lambda width: ((1 << width) - 1) << low))
SHARES = st.lists(
    st.builds(
        Share,
        member=st.sampled_from([LEAD, OTHER, REST]),
        ways=st.none() | RUNS,
        bandwidth=st.none() | st.integers(1, 10).map(lambda n: 10 * n),
    ),
    max_size=3,
    unique_by=lambda share: share.member,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(SHARES, min_size=1, max_size=6), st.sampled_from(KERNELS), RUNS)
def test_any_sequence_of_partitions_is_in_force_within_what_was_found_and_undone(scenes, kernel, former):
    bench = Bench(LAB_TWO_SOCKETS, kernel, cpus=((0,), (2,)))
    bench.fake.write("schemata", f"L3:0={former:x}\n")
    before = bench.fake.read("schemata")
    allocator = bench.prepared()
    now = found = {LEAD: former, OTHER: 0xFFF, REST: former}  # the other member is on the second cache
    for shares in scenes:
        asked = {share.member: share.ways for share in shares if share.ways is not None}
        wanted = found | {name: ways & found[name] for name, ways in asked.items()}
        if any(wanted[name] != ways for name, ways in asked.items() if name != REST) or not wanted[REST]:
            with pytest.raises(CastmatesError, match="class"):
                allocator.apply(shares)
            continue
        lost = allocator.apply(shares)
        own = {LEAD: 0, OTHER: 1, REST: 0}
        for name, mask in wanted.items():
            path = "" if name == REST else allocator.groups[name]
            assert masks(bench, path)[own[name]] == mask
        lost_on_first = any(now[name] & ~wanted[name] for name in now)
        # On the second cache the rest had everything, and loses there what a share for it leaves out.
        assert lost >= lost_on_first
        now = wanted
    allocator.restore()
    assert bench.fake.read("schemata") == before
    assert bench.groups() == []


def test_groups_that_were_given_and_never_written_are_not_called_changed(monkeypatch):
    bench = Bench()
    delegate(bench, 1000, 2)
    tree = Meddled(bench.fake)
    tree.refuse["write", "castmates-1000-0/schemata"] = errno.EIO
    with as_user(bench, 1000, monkeypatch):
        allocator = bench.allocator(tree)
        with pytest.raises(CastmatesError, match="EIO"):
            allocator.prepare(bench.held)
        allocator.restore()
    assert not [said for said in bench.said if "somebody else" in said]


def test_ways_are_lost_by_who_had_them_and_not_by_whom_we_gave_them_to():
    bench = Bench()
    allocator = bench.prepared()
    shares = [Share(member=LEAD, ways=0xF), Share(member=OTHER, ways=0xFF0)]
    allocator.apply(shares)
    bench.fake.write(f"{allocator.groups[OTHER]}/schemata", "L3:0=fff\n")  # somebody else gives it the lead's ways too
    assert allocator.apply(shares)
    assert not allocator.apply(shares)


def test_a_default_group_that_cannot_be_read_is_a_sentence():
    bench = Bench()
    tree = Meddled(bench.fake)
    allocator = bench.allocator(tree)
    tree.refuse["read", "^schemata"] = errno.EIO
    with pytest.raises(CastmatesError, match="refused to read what the rest of the machine has"):
        allocator.prepare(bench.held)


def test_a_class_that_io_holds_is_in_the_refusal_and_in_the_record():
    shape = replace(AMD_CHIPLETS, closids=3, throttle=None, io_alloc=True)
    bench = Bench(shape, V7_2)
    assert "ways of I/O (io_alloc)" not in bench.prepared().about()
    bench = Bench(shape, V7_2)
    bench.fake.write("info/L3/io_alloc", "1\n")
    with pytest.raises(CastmatesError, match=r"ENOSPC, 'Out of CLOSIDs'.*io_alloc holds one class: echo 0"):
        bench.prepared()
    bench = Bench(shape, V7_2, cpus=((0,),))
    bench.fake.write("info/L3/io_alloc", "1\n")
    assert bench.prepared().about()["ways of I/O (io_alloc)"].startswith("0=ffff;1=ffff")
