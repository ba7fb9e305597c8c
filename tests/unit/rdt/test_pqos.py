"""Members get what their shares state, by the CPUs they sit on, and everything is as it was afterwards."""

import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.linux.owner import myself
from castmates.machine import journal as journals
from castmates.machine import resctrl_state
from castmates.machine.journal import Journal
from castmates.protocols import Held
from castmates.rdt.pqos import session
from castmates.rdt.pqos.session import PqosAllocator, PqosSession, choose_interface, refuse_beside_others
from castmates.study.spec import REST, Share
from tests.unit import sysfs
from tests.unit.rdt.pqos_machine import Tool

LEAD, STREAM, CHASE, FAR = "lead@0", "stream@1", "chase@1", "far@4"
MEMBERS = {LEAD: Held(1, (0,)), STREAM: Held(2, (1,)), CHASE: Held(3, (1,)), FAR: Held(4, (4, 5))}


class Tasks:
    """Nobody has any threads."""

    shows_places = False

    def threads(self, held):
        return {each.pid: [] for each in held}


@pytest.fixture
def tool(monkeypatch):
    one = Tool()
    monkeypatch.setattr(resctrl_state, "tool_of", lambda _: one)
    monkeypatch.setattr(session, "refuse_beside_others", lambda: None)
    return one


@pytest.fixture
def driver(tool, tmp_path):
    return made(tool, tmp_path)


def made(tool, folder, members=MEMBERS, beyond_site=False):
    one = PqosAllocator(PqosSession(tool, Journal(folder / "state"), say=print), Tasks(), print, beyond_site)
    one.prepare(members)
    return one


def masks_of(tool, cpu):
    return {socket: mask for (socket, number), mask in tool.masks.items() if number == tool.cores[cpu]}


def test_a_share_holds_on_the_members_own_caches_and_everywhere_else_it_has_all(driver, tool):
    assert driver.apply([Share(member=LEAD, ways=0xF), Share(member=FAR, ways=0xF0, bandwidth=45)]) is True
    assert masks_of(tool, 0) == {0: 0xF, 1: 0xFFF}
    assert masks_of(tool, 4) == masks_of(tool, 5) == {0: 0xFFF, 1: 0xF0}
    assert tool.cores[1] == tool.cores[2] == 0
    assert tool.throttles[1, tool.cores[4]] == 50
    said = driver.read_back()
    assert said[LEAD] == "L3:0=f;1=fff MB:0=100;1=100"
    assert said[FAR] == "L3:0=fff;1=f0 MB:0=100;1=50"
    assert said[STREAM] == "L3:0=fff;1=fff MB:0=100;1=100"
    assert REST not in said
    assert driver.misplaced() == []


def test_the_rest_is_bounded_on_the_members_caches_and_they_are_not(driver, tool):
    driver.apply([Share(member=LEAD, ways=0xF), Share(member=REST, ways=0xF00)])
    assert masks_of(tool, 2) == masks_of(tool, 7) == {0: 0xF00, 1: 0xF00}
    assert masks_of(tool, 1) == masks_of(tool, 4) == {0: 0xFFF, 1: 0xFFF}
    assert driver.read_back()[REST].startswith("L3:0=f00;1=f00")


@pytest.mark.parametrize("beyond_site", [False, True])
def test_what_an_administrator_narrowed_is_not_widened(tool, tmp_path, beyond_site):
    tool.masks |= {(socket, 0): 0xFF for socket in (0, 1)}
    tool.throttles |= {(socket, 0): 50 for socket in (0, 1)}
    former = tool.state
    driver = made(tool, tmp_path, beyond_site=beyond_site)
    assert driver.read_back()[STREAM] == (
        "L3:0=fff;1=fff MB:0=100;1=100" if beyond_site else "L3:0=ff;1=ff MB:0=50;1=50"
    )
    driver.apply([Share(member=LEAD, ways=0xF), Share(member=REST, ways=0x3F0)])
    assert (tool.masks[0, 0], tool.throttles[0, 0]) == (0xF0, 50)
    assert driver.read_back()[LEAD].startswith("L3:0=f;")
    for share in (Share(member=REST, ways=0xF00), *([] if beyond_site else [Share(member=LEAD, ways=0xF00)])):
        with pytest.raises(CastmatesError, match="class"):
            driver.apply([share])
    driver.restore()
    assert tool.state == former


def test_taking_ways_back_is_told_and_giving_is_not(driver):
    assert driver.apply([Share(member=LEAD, ways=0x3)]) is True
    assert driver.apply([Share(member=LEAD, ways=0xFF)]) is False
    assert driver.apply([]) is False
    assert driver.apply([Share(member=LEAD, ways=0xFFF)]) is False


def test_of_two_members_on_a_cpu_the_one_with_a_share_decides(driver, tool):
    driver.apply([Share(member=CHASE, ways=0x3)])
    assert masks_of(tool, 1)[0] == 0x3
    driver.apply([Share(member=STREAM, ways=0x7)])
    assert masks_of(tool, 1)[0] == 0x7
    with pytest.raises(CastmatesError, match=r"(stream@1 and chase@1|chase@1 and stream@1) are both on CPU 1"):
        driver.apply([Share(member=STREAM, ways=0x7), Share(member=CHASE, ways=0x3)])
    driver.apply([Share(member=STREAM, ways=0x7), Share(member=CHASE, ways=0x7)])


def test_everything_is_put_back(driver, tool):
    before = Tool().state
    driver.apply([Share(member=LEAD, ways=0xF), Share(member=REST, ways=0xF00, bandwidth=10)])
    assert tool.state != before
    driver.restore()
    assert tool.state == before
    assert driver.session.journal.entries() == []
    driver.restore()


def test_after_a_kill_the_journal_puts_it_back(tool, tmp_path):
    dead = Journal(tmp_path / "state", replace(myself(), pid=2**22 + 1))
    one = PqosAllocator(PqosSession(tool, dead, say=print), Tasks(), print)
    one.prepare(MEMBERS)
    for ways in (0xF, 0x3, 0xF0):
        one.apply([Share(member=LEAD, ways=ways)])
        healed = Tool()
        healed.masks, healed.cores = dict(tool.masks), dict(tool.cores)
    undone = Journal(tmp_path / "state").restore(lambda entry: entry.stale)
    assert [each.how for each in undone] == ["restored"]
    assert tool.state == Tool().state


def test_what_somebody_else_has_changed_is_left_and_told(driver, tool):
    said = []
    driver.session.say = said.append
    driver.apply([Share(member=LEAD, ways=0xF)])
    tool.masks[0, 9] = 0x1
    driver.restore()
    assert "somebody else has changed it" in said[0]
    assert tool.masks[0, 9] == 0x1


def test_a_mask_that_is_not_taken_is_an_error(driver, tool):
    tool.ignores = {(0, 1)}
    with pytest.raises(CastmatesError, match="shows something else"):
        driver.apply([Share(member=LEAD, ways=0xF)])


def test_a_cpu_that_was_moved_is_told(driver, tool):
    driver.apply([Share(member=LEAD, ways=0xF)])
    tool.cores[0] = 0
    assert driver.read_back()[LEAD] == "L3:0=fff;1=fff MB:0=100;1=100"
    assert driver.misplaced() == ["CPU 0 is in class 0 and not in 1"]


def test_a_thread_that_may_leave_its_cpus_is_told(tool, tmp_path):
    class Own(Tasks):
        def threads(self, held):
            return {each.pid: [os.getpid()] for each in held}

    cpu = max(os.sched_getaffinity(0)) + 1
    one = made(tool, tmp_path, {LEAD: Held(os.getpid(), (cpu % 8,))})
    one.tasks = Own()
    assert f"thread {os.getpid()} of {LEAD} may run on CPU" in one.misplaced()[0]


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ([Share(member=LEAD, ways=0x1000)], "masks here are within fff"),
        ([Share(member=LEAD, ways=0)], "at least 1 ways"),
        ([Share(member="nobody", ways=1)], "nobody"),
        ([Share(member=LEAD, ways=1, code=1)], "without cdp"),
    ],
)
def test_shares_that_do_not_fit_are_refused(driver, tool, shares, sentence):
    with pytest.raises(CastmatesError, match=sentence):
        driver.apply(shares)
    assert tool.state == Tool().state


def test_more_shares_than_classes_are_refused(tmp_path, monkeypatch):
    small = Tool(classes=2, sockets=1)
    monkeypatch.setattr(resctrl_state, "tool_of", lambda _: small)
    monkeypatch.setattr(session, "refuse_beside_others", lambda: None)
    one = made(small, tmp_path, {LEAD: Held(1, (0,)), STREAM: Held(2, (1,))})
    with pytest.raises(CastmatesError, match="more than the 2 classes"):
        one.apply([Share(member=LEAD, ways=1), Share(member=STREAM, ways=2)])


def test_classes_of_others_are_refused(tool, tmp_path):
    tool.cores[6] = 3
    with pytest.raises(CastmatesError, match="CPU 6 is in a cache class of somebody else"):
        made(tool, tmp_path)


def test_a_member_on_a_cpu_that_is_not_there_is_refused(tool, tmp_path):
    with pytest.raises(CastmatesError, match="does not know CPU 9"):
        made(tool, tmp_path, {LEAD: Held(1, (9,))})


@pytest.mark.parametrize("groups", [(), ("COS1",), ("pod_x",)])
def test_never_beside_resctrl(tmp_path, groups):
    root = tmp_path
    point = root / "sys/fs/resctrl"
    sysfs.write(root / "proc/self/mountinfo", "30 1 0:9 / /sys/fs/resctrl rw - resctrl resctrl rw")
    for group in groups:
        sysfs.write(point / group / "tasks", "")
    point.mkdir(parents=True, exist_ok=True)
    with pytest.raises(CastmatesError, match="resctrl is mounted at /sys/fs/resctrl") as caught:
        refuse_beside_others(root)
    assert all(group in str(caught.value) for group in groups)


def test_registers_before_the_kernel_before_nothing(tmp_path):
    sysfs.write(tmp_path / "proc/filesystems", "nodev\tresctrl")
    assert choose_interface(tmp_path, lambda _: True) == "msr"
    assert choose_interface(tmp_path, lambda _: False) == "os"
    sysfs.write(tmp_path / "proc/filesystems", "nodev\tsysfs")
    with pytest.raises(CastmatesError, match="no way to the processor"):
        choose_interface(tmp_path, lambda _: False)


def test_the_kernels_interface_is_undone_with_its_mount_and_groups(tool, tmp_path):
    tool.interface = "os"
    one = made(tool, tmp_path)
    kinds = [entry.change.kind for entry in one.session.journal.entries()]
    assert kinds[0] == "resctrl-mount"
    assert kinds[-1] == "pqos"
    assert set(kinds[1:-1]) == {"group"}


SHARES = st.lists(
    st.builds(Share, member=st.sampled_from([LEAD, STREAM, FAR, REST]), ways=st.integers(1, 0xFFF)),
    max_size=4,
    unique_by=lambda share: share.member,
)


@given(scenes=st.lists(SHARES, min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_whatever_is_given_is_there_and_whatever_was_there_comes_back(tmp_path_factory, scenes):
    tool = Tool()
    kind = journals.KINDS["pqos"]
    journals.KINDS["pqos"] = replace(
        kind,
        read=lambda _: resctrl_state.as_text(tool.state),
        write=lambda _, text: resctrl_state.set_all(tool, text, resctrl_state.as_text(tool.state)),
    )
    refuse, session.refuse_beside_others = session.refuse_beside_others, lambda: None
    try:
        one = made(tool, tmp_path_factory.mktemp("pqos"))
        for shares in scenes:
            one.apply(shares)
            for share in shares:
                cpus = (2, 3, 6, 7) if share.member == REST else MEMBERS[share.member].cpus
                for cpu in cpus:
                    assert masks_of(tool, cpu)[cpu // 4] == share.ways
        one.restore()
        assert tool.state == Tool().state
    finally:
        journals.KINDS["pqos"], session.refuse_beside_others = kind, refuse
