"""Prefetchers as a factor: in the plan, on fake registers, in the ledger, on the modelled machine."""

import errno
import os
import struct
from dataclasses import replace

import pytest

from castmates.errors import CastmatesError
from castmates.linux import msr
from castmates.linux.owner import myself
from castmates.machine.journal import KINDS, Journal, Kind
from castmates.machine.knobs import AMD_CONTROL, PREFETCH_CONTROL
from castmates.runner.modelled.launch import run_launch
from castmates.runner.processes.isolation import switched
from castmates.runner.rounds.witnesses import PREFETCHERS_CHANGED, WERE_OFF, PrefetchWitness
from castmates.study.mitigations import PREFETCHERS_OFF
from castmates.study.mixes import Host, Programs, resolve
from castmates.study.model import Study
from castmates.study.modelled import MachineModel, layout_of
from castmates.study.partitions.partitions import masked
from castmates.study.reading import read_keys
from castmates.study.schedule import stretches
from castmates.study.spec import UNMANAGED
from tests.unit import sysfs
from tests.unit.makers import plan, prepared, study, workloads
from tests.unit.modelled.makers import QUIET, STUDY, WORKLOADS, project_of
from tests.unit.snapshots import assert_as_before, refusal

BOTH = {"prefetchers": ["on", "off"]}
TEXT = "name: x\nleads: [a]\nantagonists: [b]\n"
INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
AMD = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
FOUND = 0x20  # a bit that is none of the prefetchers'


def cohort(**cache):
    return plan(study(["a"], ["b"], cache=cache)).cohorts[0]


@pytest.fixture
def root(tmp_path):
    """CPUs whose registers are files; on real ones siblings have one register."""
    for cpu in range(8):
        device = tmp_path / f"root/dev/cpu/{cpu}/msr"
        device.parent.mkdir(parents=True)
        device.write_bytes(bytes(PREFETCH_CONTROL) + struct.pack("<Q", FOUND))
    sysfs.write(tmp_path / "root/proc/cpuinfo", INTEL)
    return tmp_path / "root"


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "state")


def held(root, register=PREFETCH_CONTROL):
    return [msr.read_msr(cpu, register, root) for cpu in range(8)]


def of_off(who):
    return next(scene for scene in who.scenes if scene.partition == PREFETCHERS_OFF)


def begun(root, journal, who=None, say=str):
    return switched(who or cohort(**BOTH), "a launch", journal, say, root)


def test_off_is_a_partition_beside_every_mix_and_measures_nothing_else_again():
    bare, both = plan(study(["a"], ["b"])), plan(study(["a"], ["b"], cache=BOTH))
    assert [mix.identity for mix in bare.mixes] == [mix.identity for mix in both.mixes if not mix.partitions]
    (mix,) = (mix for mix in both.mixes if mix.partitions)
    (partition,) = mix.partitions
    assert (partition.name, partition.of_cache) == (PREFETCHERS_OFF, False)
    assert {(share.member, share.prefetchers) for share in partition.shares} == {
        (name, "off") for name in (mix.lead, *mix.antagonists)
    }
    assert not masked(both), "no mask is set"
    for one in ("on", ["on"]):
        assert plan(study(["a"], ["b"], cache={"prefetchers": one})).launches == bare.launches


def test_no_scene_runs_in_a_stretch_whose_prefetchers_it_did_not_ask_for():
    (launch, *_) = plan(study(["a"], ["b"], cache=BOTH)).launches
    for stretch in stretches(launch, 0):
        asked = {any(share.prefetchers for share in scene.shares) for scene in stretch.scenes}
        assert asked == {any(share.prefetchers for share in stretch.shares)}


@pytest.mark.parametrize(("cpuinfo", "register", "off"), [(INTEL, PREFETCH_CONTROL, 0x2F), (AMD, AMD_CONTROL, 0x2F)])
def test_registers_follow_the_scene_and_are_put_back(root, journal, cpuinfo, register, off):
    sysfs.write(root / "proc/cpuinfo", cpuinfo)
    for cpu in range(8):
        msr.write(msr.path_of(cpu, register, root), f"{FOUND:#x}")  # a file with a hole
    who = cohort(**BOTH)
    cpus = {cpu for member in who.members for cpu in member.cpus}
    with begun(root, journal, who) as prefetchers:
        for scene in who.scenes:  # also the placebo's, whose lead alone has a share
            prefetchers.apply(scene.shares)
            now = off if scene.partition == PREFETCHERS_OFF else FOUND
            assert held(root, register) == [now if cpu in cpus else FOUND for cpu in range(8)]
        prefetchers.apply(of_off(who).shares)
    assert held(root, register) == [FOUND] * 8
    assert journal.entries() == []


def test_a_killed_launch_leaves_them_to_the_journal(root, tmp_path):
    journal = Journal(tmp_path / "state", replace(myself(), born=1))  # who had our number before us
    context = begun(root, journal)
    context.__enter__().apply(of_off(cohort(**BOTH)).shares)
    assert held(root) != [FOUND] * 8
    assert {undone.how for undone in Journal(tmp_path / "state").restore(lambda entry: entry.stale)} == {"restored"}
    assert held(root) == [FOUND] * 8


def test_without_the_factor_no_register_is_looked_at(tmp_path, journal):
    with begun(tmp_path, journal, cohort()) as prefetchers:
        assert prefetchers.read_back() == {}


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda root: sysfs.write(root / "proc/cpuinfo", INTEL.replace("143", "175")), "knows the registers of"),
        (lambda root: [file.unlink() for file in root.glob("dev/cpu/*/msr")], "cannot be read: .*modprobe msr"),
        (lambda root: [msr.write(file / "0x1a4", "0x2f") for file in root.glob("dev/cpu/*/msr")], "are off already"),
    ],
)
def test_nothing_begins_where_registers_cannot_be_switched(root, journal, spoil, sentence):
    spoil(root)
    before = sorted(file.read_bytes() for file in root.glob("dev/cpu/*/msr"))
    with pytest.raises(CastmatesError, match=rf"prefetchers.*{sentence}.*'off' out of 'cache.prefetchers'"):
        begun(root, journal).__enter__()
    assert sorted(file.read_bytes() for file in root.glob("dev/cpu/*/msr")) == before
    assert journal.entries() == []


def test_a_locked_down_kernel_is_told_before_anything_is_launched(root, journal, monkeypatch):
    def refuse(path, value):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setitem(KINDS, msr.KIND, Kind(msr.read, refuse))
    with pytest.raises(CastmatesError, match=r"prefetchers cannot be switched: .*0x1a4.*locked.down"):
        begun(root, journal).__enter__()
    assert journal.entries() == []


def test_the_witness_sees_what_another_program_writes(root, journal):
    with begun(root, journal) as prefetchers:
        witness = PrefetchWitness(prefetchers)
        witness.start([])
        assert [(sample.metric, sample.value) for sample in witness.stop()] == [(WERE_OFF, 0.0)]
        witness.start([])
        cpu = cohort(**BOTH).lead.cpus[0]
        msr.write(msr.path_of(cpu, PREFETCH_CONTROL, root), "0x2f")
        (_, changed) = witness.stop()
        assert (changed.metric, changed.note.split(" was ")[1]) == (PREFETCHERS_CHANGED, "'0x2f' and not '0x20'")
        msr.write(msr.path_of(cpu, PREFETCH_CONTROL, root), "0x23")  # somebody else's by now: it is left and told
        told = []
    with begun(root, journal, say=told.append):
        msr.write(msr.path_of(cpu, PREFETCH_CONTROL, root), "0x21")
    assert len(told) == 1
    assert "somebody else has changed it" in told[0]


def test_the_plan_says_that_no_launch_would_begin():
    where, programs = layout_of(MachineModel()), workloads("a", "b")
    host = Host(where, no_prefetching="the module is not loaded.")
    found = resolve(study(["a"], ["b"], cache=BOTH), Programs(programs, prepared(programs), "p"), host, "study.yaml")
    assert "cache.prefetchers: no launch will begin here: the module is not loaded." in map(str, found.notes)


def test_bare_words_of_yaml_are_switches_and_others_are_refused():
    both = f"{TEXT}cache: {{prefetchers: [on, off]}}\n"
    assert read_keys(Study, both, "study.yaml").cache.prefetchers == ("on", "off")
    told = {
        word: refusal(read_keys, Study, f"{TEXT}cache: {{prefetchers: {word}}}\n", "study.yaml")
        for word in ("maybe", "[on, 1]", "[]", "{a: off}")
    }
    knob = refusal(read_keys, Study, f"{both}machine: {{prepare: {{prefetchers: off}}}}\n", "study.yaml")
    assert_as_before("prefetchers", told | {"a knob beside the factor": knob})


def test_a_modelled_workload_loses_what_prefetchers_began_ahead(tmp_path, monkeypatch):
    with_prefetching = WORKLOADS.replace("parallel: 16,", "parallel: 16, prefetched: 75%,")
    monkeypatch.setattr("tests.unit.modelled.makers.WORKLOADS", with_prefetching)
    (launch, *_) = project_of(tmp_path, f"{STUDY}{QUIET}cache: {{prefetchers: [on, off]}}\n").plan().launches
    outcome = run_launch(launch, tmp_path, tmp_path, lambda _: None, lambda: None)
    lead, other = (member.name for member in launch.cohort.members)
    rates = {
        (window.scene.partition, name): window.total(name).rate
        for window in outcome.windows for name in window.scene.active if window.scene.kind == "corun"
    }  # fmt: skip
    assert rates[PREFETCHERS_OFF, other] < 0.5 * rates[UNMANAGED, other]
    assert rates[PREFETCHERS_OFF, lead] > rates[UNMANAGED, lead], "its antagonist presses less"
    scene = next(s.name for s in launch.cohort.scenes if s.kind == "corun" and s.partition == PREFETCHERS_OFF)
    assert rates[PREFETCHERS_OFF, other] == pytest.approx(outcome.truth[scene][other]["rate"], rel=0.02)
