"""What each knob means on a recorded machine, and how a launch prepares it and puts it back."""

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.machine import knobs
from castmates.machine.journal import KINDS, Journal, Kind
from castmates.machine.prepare import Preparing, prepared
from castmates.report.launch_record import LaunchRecord
from castmates.study.model import Prepare, Study
from castmates.study.reading import read_keys
from tests.unit import makers, sysfs

OFF = dict.fromkeys(("turbo", "numa_balancing", "nmi_watchdog"), "off")
EVERYTHING = Prepare(governor="performance", thp="never", irq_affinity="away", epp="performance", **OFF)
CPU = "sys/devices/system/cpu"
THP = "sys/kernel/mm/transparent_hugepage/enabled"


def write(root, **changed):
    files = {
        f"{CPU}/cpufreq/policy0/scaling_governor": "powersave",
        f"{CPU}/cpufreq/policy0/scaling_available_governors": "performance powersave",
        f"{CPU}/cpufreq/policy4/scaling_governor": "performance",
        f"{CPU}/cpufreq/policy4/scaling_available_governors": "performance powersave",
        f"{CPU}/intel_pstate/no_turbo": 0,
        THP: "always [madvise] never",
        "proc/sys/kernel/numa_balancing": 1,
        "proc/sys/kernel/nmi_watchdog": 1,
        "proc/irq/1/smp_affinity_list": "0-7",
        "proc/irq/2/smp_affinity_list": "2",
        "proc/irq/10/smp_affinity_list": "0,4",
        "proc/irq/default_smp_affinity": "ff",
        f"{CPU}/cpufreq/policy0/energy_performance_preference": "balance_performance",
        f"{CPU}/cpufreq/policy0/energy_performance_available_preferences": "default performance balance_performance",
        "proc/77/comm": "bash",
    }
    for name, text in (files | changed).items():
        sysfs.write(root / name, text)


@pytest.fixture
def root(tmp_path):
    """Two sockets of two cores with SMT (0 and 4 are siblings), on which every knob is there."""
    tree = sysfs.build(tmp_path / "root", sysfs.xeon())
    write(tree)
    return tree


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "state")


def contents(root):
    return {str(file.relative_to(root)): file.read_text().strip() for file in root.rglob("*") if file.is_file()}


def test_everything_is_set_for_the_launch_and_put_back_after_it(root, journal):
    before, told = contents(root), []
    with prepared(EVERYTHING, [0], Preparing("a launch", told.append, journal, root)) as record:
        now = contents(root)
        assert now[f"{CPU}/cpufreq/policy0/scaling_governor"] == "performance"
        assert now[f"{CPU}/intel_pstate/no_turbo"] == "1"
        assert now[THP] == "never"
        assert now["proc/sys/kernel/numa_balancing"] == now["proc/sys/kernel/nmi_watchdog"] == "0"
        assert [now[f"proc/irq/{n}/smp_affinity_list"] for n in (1, 2, 10)] == ["1-3,5-7", "2", "1-3,5-7"]
        # Every knob but those that were as wished already.
        assert len(journal.entries()) == 9
        assert now["proc/irq/default_smp_affinity"] == "ee"
        assert now[f"{CPU}/cpufreq/policy0/energy_performance_preference"] == "performance"
    after = contents(root)
    assert after.pop(THP) == "madvise"
    del before[THP]
    assert after == before
    assert journal.entries() == []
    assert record["thp"] == {"before": {str(root / THP): "madvise"}, "set": {str(root / THP): "never"}}
    governors = record["governor"]
    assert sorted(governors["before"].values()) == ["performance", "powersave"]
    assert set(governors["set"].values()) == {"performance"}
    assert record["irq_affinity"]["before"] == {
        str(root / "proc/irq/1/smp_affinity_list"): "0-7",
        str(root / "proc/irq/10/smp_affinity_list"): "0,4",
        str(root / "proc/irq/default_smp_affinity"): "ff",
    }
    assert record["irq_affinity"]["refused"] == {}
    assert told[-1].startswith("machine prepared: governor performance, turbo off, thp never")


def test_nothing_wished_touches_nothing(root, journal):
    with prepared(Prepare(), [0], Preparing("a launch", print, journal, root)) as record:
        assert record == {}
    assert not journal.path.parent.exists()


def test_turbo_lies_in_one_of_two_places(root):
    assert [change.new for change in knobs.KNOBS["turbo"].changes(root, "off")] == ["1"]
    (root / CPU / "intel_pstate/no_turbo").unlink()
    sysfs.write(root / CPU / "cpufreq/boost", 1)
    assert [change.new for change in knobs.KNOBS["turbo"].changes(root, "off")] == ["0"]
    assert knobs.KNOBS["turbo"].changes(root, "on") == []


@pytest.mark.parametrize("knob", [*knobs.KNOBS, knobs.IRQ_AFFINITY])
def test_a_knob_that_is_not_there_is_named_with_what_to_do(knob, tmp_path, journal):
    word = getattr(EVERYTHING, knob)
    sysfs.write(tmp_path / CPU / "online", "0-1")
    wish = Prepare.model_validate({knob: word})
    with pytest.raises(CastmatesError, match=f"{knob} cannot be set here.*leave it out of 'machine.prepare'"):
        prepared(wish, [0], Preparing("a launch", print, journal, tmp_path)).__enter__()


def test_a_word_that_the_kernel_does_not_know_is_named_with_those_it_does(root):
    with pytest.raises(CastmatesError, match=r"governor cannot be 'schedutil'.*offers only performance, powersave"):
        knobs.KNOBS["governor"].changes(root, "schedutil")
    write(root, **{THP: "always [madvise]"})
    with pytest.raises(CastmatesError, match=r"thp cannot be 'never'.*offers only always, madvise"):
        knobs.KNOBS["thp"].changes(root, "never")


def test_interrupts_have_to_have_somewhere_to_go(root):
    with pytest.raises(CastmatesError, match=r"the launch is on every CPU there is \(0-7\)"):
        knobs.interrupts_away(root, range(8))
    # With only a sibling left it is that one, which is better than a member's CPU.
    assert {change.new for change in knobs.interrupts_away(root, range(7))} == {"7", "80"}


def refusing(code, *names):
    real = KINDS["file"]

    def write(path, value):
        if any(name in str(path) for name in names):
            raise OSError(code, "refused")
        real.write(path, value)

    return Kind(real.read, write)


def test_interrupts_that_cannot_be_moved_stay_and_are_counted(root, journal, monkeypatch):
    monkeypatch.setitem(KINDS, "file", refusing(errno.EIO, "irq/10"))
    write(root, **{"proc/88/comm": "irqbalance"})
    told = []
    with prepared(Prepare(irq_affinity="away"), [0], Preparing("a launch", told.append, journal, root)) as record:
        assert contents(root)["proc/irq/10/smp_affinity_list"] == "0,4"
    assert record["irq_affinity"]["refused"] == {str(root / "proc/irq/10/smp_affinity_list"): "refused"}
    assert list(record["irq_affinity"]["set"].values()) == ["1-3,5-7", "ee"]
    assert "1 of 2 interrupts cannot be moved off the launch's CPUs" in told
    assert any("irqbalance is running" in one for one in told)


@pytest.mark.parametrize("names", [("nmi_watchdog",), ("irq/1/",)])
def test_what_is_not_permitted_ends_the_launch_and_puts_the_others_back(names, root, journal, monkeypatch):
    before = contents(root)
    monkeypatch.setitem(KINDS, "file", refusing(errno.EACCES, *names))
    with pytest.raises(CastmatesError, match=r"run the study as root, or leave it out of 'machine.prepare'"):
        prepared(EVERYTHING, [0], Preparing("a launch", print, journal, root)).__enter__()
    assert contents(root) | {THP: ""} == before | {THP: ""}
    assert journal.entries() == []


def test_what_others_turn_meanwhile_is_theirs_and_stands_in_the_record(root, journal):
    told = []
    with prepared(Prepare(thp="never"), [0], Preparing("a launch", told.append, journal, root)) as record:
        (root / THP).write_text("[always] madvise never\n")
    assert contents(root)[THP] == "[always] madvise never"
    assert record["thp"]["lost"] == {str(root / THP): "always"}
    assert "somebody else has changed it" in told[-1]


WISHES = st.builds(
    Prepare,
    governor=st.sampled_from([None, "performance", "powersave"]),
    turbo=st.sampled_from([None, "on", "off"]),
    thp=st.sampled_from([None, "always", "never"]),
    irq_affinity=st.sampled_from([None, "away"]),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(WISHES, st.sets(st.integers(0, 7), min_size=1, max_size=7), st.booleans()), max_size=4))
def test_any_launches_leave_the_machine_as_it_was(launches):
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where syncing costs nothing
    with tempfile.TemporaryDirectory(dir=memory) as name:
        folder = Path(name)
        root = sysfs.build(folder / "root", sysfs.xeon())
        write(root)
        before = {knob: one.read(root) for knob, one in knobs.KNOBS.items()}
        for wish, cpus, fails in launches:
            with (
                suppress(ZeroDivisionError),
                prepared(wish, cpus, Preparing("a launch", str, Journal(folder / "state"), root)),
            ):
                if fails:
                    raise ZeroDivisionError
        assert {knob: one.read(root) for knob, one in knobs.KNOBS.items()} == before
        assert contents(root)["proc/irq/10/smp_affinity_list"] == "0,4"


def test_reports_have_what_was_set_in_the_words_of_the_study(root, journal):
    wish = Prepare(thp="never", cpu_dma_latency=None, irq_affinity="away")
    with prepared(wish, [0], Preparing("a launch", str, journal, root)) as record:
        launch = {"prepared": record, "spec": {"design": {"prepare": wish.model_dump()}}}
    assert LaunchRecord(launch).prepared == {"thp": "never", "irq_affinity": "away"}
    assert LaunchRecord(launch | {"prepared": {}}).prepared == {}


STUDY = """
name: test
leads: [a]
antagonists: [b]
controls: null
machine: {prepare: {governor: performance, turbo: off, thp: never, numa_balancing: on, irq_affinity: away}}
"""


def test_a_study_says_it_in_plain_words():
    wish = read_keys(Study, STUDY, "study.yaml").machine.prepare
    words = {"governor": "performance", "turbo": "off", "thp": "never", "numa_balancing": "on"}
    assert wish.words == words | {"irq_affinity": "away"}
    with pytest.raises(CastmatesError, match=r"'machine.prepare.turbo' is 1, but expected 'on' or 'off'"):
        read_keys(Study, STUDY.replace("turbo: off", "turbo: 1"), "study.yaml")


def test_what_is_set_belongs_to_what_is_measured():
    def plan(prepare):
        return makers.plan(makers.study(["a"], ["b"], machine={"prepare": prepare}))

    plain, off, on = plan({}), plan({"turbo": "off"}), plan({"turbo": "on"})
    assert plain.mixes == makers.plan(makers.study(["a"], ["b"])).mixes
    assert len({one.mixes[0].identity for one in (plain, off, on)}) == 3
    assert off.launches[0].design.prepare.words == {"turbo": "off"}
