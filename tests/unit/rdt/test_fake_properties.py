"""What holds for the fake whatever is done to it, on machines of many shapes and on every kernel version."""

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.machine import topology
from castmates.rdt.fake import (
    AMD_CHIPLETS,
    HASWELL,
    LAB,
    LAB_ALLOCATION_ONLY,
    LAB_MONITORING_ONLY,
    LAB_NO_THROTTLE,
    LAB_TWO_SOCKETS,
    V6_1,
    V6_12,
    V7_2,
    FakeResctrl,
    Group,
    Shape,
)
from castmates.rdt.fake.kernel import parse_cpu_list, parse_cpu_mask, show_cpu_list, show_cpu_mask
from tests.unit.rdt.stories import GROUPS, Story, below, take

GAPS = Shape(domains={0: (0, 1), 3: (2,), 17: (3, 4, 5)}, ways=8, shareable=0, sparse=True, rmids=6, closids=5)
SHAPES = [LAB, LAB_TWO_SOCKETS, LAB_NO_THROTTLE, LAB_ALLOCATION_ONLY, LAB_MONITORING_ONLY, AMD_CHIPLETS, HASWELL, GAPS]


@st.composite
def stories(draw, options: tuple[str, ...] = ("", "cdp"), most: int = 30) -> tuple[FakeResctrl, Story]:
    """Return a machine with a few groups, to which up to so many things have been done, and what comes next."""
    shape, option = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(options))
    fake = FakeResctrl(shape, draw(st.sampled_from([V6_1, V6_12, V7_2])), options=None)
    try:
        fake.mount(option)
    except OSError:
        option = ""
        fake.mount()
    story = Story(draw(st.integers(0, 1 << 32)), shape, option)
    for group in GROUPS[1:-1]:
        with suppress(OSError):
            fake.make(group)
    fake.processes.fork()
    for _ in range(draw(st.integers(0, most))):
        do(fake, story)
    return fake, story


def do(fake: FakeResctrl, story: Story) -> None:
    with suppress(OSError):
        take(fake, story.step())


Limits = dict[tuple[str, str, int], int]


def limits(fake: FakeResctrl) -> Limits:
    """Return all that groups may take, as their files show: group, resource, domain -> value."""
    found = {}
    for group in fake.groups:
        if group.control is None:
            for line in fake.read(f"{group.path}/schemata".lstrip("/")).splitlines():
                name, _, entries = line.strip().partition(":")
                for entry in entries.split(";"):
                    domain, _, value = entry.partition("=")
                    found[group.path, name, int(domain)] = int(value, 10 if name == "MB" else 16)
    return found


def named(group: str, text: str) -> set[tuple[str, str, int]]:
    """Return what a write that was taken has named."""
    pairs = (line.partition(":") for line in text.rstrip("\n").split("\n"))
    return {
        (group, name.strip(), int(entry.split("=")[0])) for name, _, rest in pairs for entry in rest.split(";") if entry
    }


@given(stories())
@settings(max_examples=100, deadline=None)
def test_a_write_to_schemata_does_all_or_nothing(told):
    fake, story = told
    path, text = story.control(), story.schemata()
    was = limits(fake)
    try:
        fake.write(below(path, "schemata"), text)
    except OSError:
        assert limits(fake) == was
    else:
        now = limits(fake)
        assert now.keys() == was.keys()
        assert {key for key in was if was[key] != now[key]} <= named(path, text) <= now.keys()
        assert fake.read("info/last_cmd_status") == "ok\n"


@given(stories(most=0))
@settings(max_examples=60, deadline=None)
def test_ids_cpus_threads_and_masks_stay_in_order(told):
    fake, story = told
    for _ in range(30):
        do(fake, story)
        check_ids(fake)
        check_cpus(fake)
        check_threads(fake)
        check_masks(fake)
    fake.advance(2)
    if fake.shape.monitors:
        in_use = {group.rmid for group in fake.groups}
        assert len(fake._rmids.free) + len(in_use) == fake.shape.rmids, (
            "an idle machine's limbo empties within two seconds"
        )


def controls_of(fake: FakeResctrl) -> list[Group]:
    return [group for group in fake.groups if group.control is None]


def check_ids(fake: FakeResctrl) -> None:
    assert fake._layout is not None
    controls = fake._layout.groups.controls
    used = [group.closid for group in controls_of(fake)]
    assert sorted([*used, *controls.free_closids]) == list(range(max(1, controls.closids)))
    if fake.shape.monitors:
        rmids = [group.rmid for group in fake.groups]
        assert sorted([*rmids, *fake._rmids.free, *fake._rmids.limbo]) == list(range(fake.shape.rmids))
    for group in fake.groups:
        assert group.control is None or group.control.closid == group.closid


def check_cpus(fake: FakeResctrl) -> None:
    owned = [cpu for group in controls_of(fake) for cpu in group.cpus]
    assert sorted(owned) == sorted(fake._online)
    for group in fake.groups:
        assert group.control is None or group.cpus <= group.control.cpus


def check_threads(fake: FakeResctrl) -> None:
    for thread in fake.processes:
        res, mon = fake.proc(f"{thread.tid}/cpu_resctrl_groups").splitlines()
        control = "" if res == "res:/" else res.removeprefix("res:")
        path = f"{control}/mon_groups/{mon.removeprefix('mon:')}".lstrip("/") if mon != "mon:" else control
        assert (fake.group(path).closid, fake.group(path).rmid) == (thread.closid, thread.rmid)
        if fake.shape.allocates or mon != "mon:":
            assert str(thread.tid) in fake.read(f"{path}/tasks".lstrip("/")).split()


def check_masks(fake: FakeResctrl) -> None:
    shape, exclusive = fake.shape, {group.path for group in fake.groups if group.mode == "exclusive"}
    now = limits(fake)
    for (group, name, domain), value in now.items():
        if name == "MB":
            assert shape.throttle is not None
            assert shape.throttle.least <= value <= shape.throttle.most
            assert value % shape.throttle.step == 0
            continue
        assert value <= shape.full
        assert value.bit_count() >= shape.least_bits
        assert shape.sparse or bin(value).strip("0b").count("0") == 0
        if group in exclusive:
            others = [now[key] for key in now if key[1:] == (name, domain) and key[0] != group]
            assert not any(value & other for other in others)


@given(stories(("", "cdp", "mba_MBps")))
@settings(max_examples=80, deadline=None)
def test_what_schemata_says_can_be_written_back_and_changes_nothing(told):
    fake, _ = told
    was = limits(fake)
    for group in controls_of(fake):
        path = f"{group.path}/schemata".lstrip("/")
        if text := fake.read(path):
            fake.write(path, text)
    assert limits(fake) == was


@given(st.sets(st.integers(0, 150)), st.integers(151, 300))
def test_cpus_are_read_as_they_are_written(cpus, possible):
    assert parse_cpu_list(show_cpu_list(cpus) + "\n", possible) == cpus
    assert parse_cpu_mask(show_cpu_mask(cpus, possible) + "\n", possible) == cpus
    assert topology.parse_cpu_list(show_cpu_list(cpus)) == sorted(cpus)
