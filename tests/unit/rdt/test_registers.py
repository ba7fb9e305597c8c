"""What the processor holds is read from its registers, never written, and compared with what the kernel was asked."""

import errno
import os
from dataclasses import replace

import pytest

from castmates.linux.msr import read_msr
from castmates.protocols import HeldOtherwise, ReadsProcessor
from castmates.rdt.fake import AMD_CHIPLETS, V6_1, V6_12, V7_2, FakeResctrl, Shape, Throttle
from castmates.rdt.fake.machine import SECOND_MASKS_FROM, SLOW_LIMITS_FROM
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.mounting import DELAYS_FROM, LIMITS_FROM, MASKS_FROM, Registers
from castmates.study.spec import REST, Share
from tests.unit.rdt import owned
from tests.unit.rdt.fakes import Bench

LEAD, OTHER = "lead@0", "other@1"
# The values of https://github.com/intel/intel-cmt-cat/issues/69 and /246.
TIED = Shape(ways=11, shareable=0x600, tied=0x600, throttle=Throttle(becomes={70: 90, 80: 90}))
SPLIT = (Share(member=LEAD, ways=0x3FF), Share(member=OTHER, ways=0x400))


def prepared(bench, read=None):
    allocator = ResctrlAllocator(replace(bench.mounted(), read_register=read or bench.fake.msr))
    allocator.prepare(bench.held)
    return allocator


def under(allocator, *shares):
    allocator.apply(shares)
    return allocator.processor().under[shares]


@pytest.mark.parametrize(("kernel", "options"), [(V6_1, ""), (V6_12, ""), (V6_12, "debug")])
def test_ways_that_the_processor_ties_are_seen_in_its_registers_only(kernel, options):
    bench = Bench(TIED, kernel, options)
    bench.fake.make("of-somebody-else")  # so that classes and members are numbered differently
    allocator = prepared(bench)
    assert isinstance(allocator, ReadsProcessor)
    assert under(allocator, *SPLIT) == [
        HeldOtherwise(LEAD, "L3", 0, 0x3FF, 0x7FF),
        HeldOtherwise(OTHER, "L3", 0, 0x400, 0x600),
    ]
    assert allocator.read_back()[OTHER].endswith("L3:0=400")  # the kernel shows what it was asked
    assert under(allocator, Share(member=LEAD, ways=0x1FF), Share(member=OTHER, ways=0x600)) == []
    assert sum("the processor makes L3:0=600 of it" in sentence for sentence in bench.said) == 1


def test_code_and_data_have_two_registers_of_each_class():
    bench = Bench(TIED, V6_12, "cdp")
    found = under(prepared(bench), Share(member=OTHER, ways=0x1, code=0x400))
    assert found == [HeldOtherwise(OTHER, "L3CODE", 0, 0x400, 0x600)]


def test_a_throttle_that_becomes_another_one():
    bench = Bench(TIED)
    allocator = prepared(bench)
    for asked, held in ((70, 90), (80, 90)):
        assert under(allocator, Share(member=OTHER, bandwidth=asked)) == [HeldOtherwise(OTHER, "MB", 0, asked, held)]
    assert under(allocator, Share(member=OTHER, bandwidth=60)) == []
    assert "MB:0=60" in allocator.read_back()[OTHER]


def test_amd_has_limits_where_intel_has_delays_and_the_loop_of_the_kernel_has_no_register():
    shape = replace(AMD_CHIPLETS, throttle=replace(AMD_CHIPLETS.throttle, becomes={64: 72}))
    bench = Bench(shape, V6_12, cpus=((17,), (2,)))
    found = under(prepared(bench), Share(member=LEAD, bandwidth=64), Share(member=OTHER, ways=0x5))
    assert found == [HeldOtherwise(LEAD, "MB", 16, 64, 72)]
    mega = prepared(Bench(TIED, V6_12, "mba_MBps"))
    assert under(mega, *SPLIT)[1:] == [HeldOtherwise(OTHER, "L3", 0, 0x400, 0x600)]
    slow = (Share(member=LEAD, bandwidth=70),)
    mega.apply(slow)
    assert slow not in mega.processor().under  # nothing is claimed of what was not compared


def test_a_cache_whose_cpus_are_not_known_is_not_taken_for_compared():
    bench = Bench(TIED)
    allocator = ResctrlAllocator(replace(bench.mounted(), read_register=bench.fake.msr, domain_of={0: 7, 1: 7}))
    allocator.prepare(bench.held)
    allocator.apply(SPLIT)
    readings = allocator.processor()
    assert not readings.under
    assert (readings.how, bool(readings.lacking)) == ("", True)


def test_the_rest_of_the_machine_is_compared_too():
    bench = Bench(TIED)
    found = under(prepared(bench), Share(member=LEAD, ways=0x3FF), Share(member=REST, ways=0x400))
    assert HeldOtherwise(REST, "L3", 0, 0x400, 0x600) in found


def test_registers_are_read_once_under_each_partition():
    bench, reads = Bench(TIED), []

    def read(cpu, register):
        reads.append(register)
        return bench.fake.msr(cpu, register)

    allocator = prepared(bench, read)
    reads.clear()
    allocator.apply(SPLIT)
    assert len(reads) == 4  # a mask and a throttle of either member
    allocator.apply(())
    allocator.apply(SPLIT)
    assert len(reads) == 4


@pytest.mark.parametrize("refused", [errno.ENOENT, errno.EPERM, errno.EIO])
def test_what_cannot_be_read_is_reported_and_nothing_is_claimed(refused):
    def read(cpu, register):
        raise OSError(refused, os.strerror(refused))

    allocator = prepared(Bench(TIED), read)
    allocator.apply(SPLIT)
    readings = allocator.processor()
    assert readings.lacking.startswith(f"the processor's registers cannot be read ({os.strerror(refused)})")
    assert not readings.under


def test_a_group_is_left_alone_where_no_register_can_be_read():
    def read(cpu, register):
        raise PermissionError(errno.EPERM, "no")

    bench = Bench(TIED)
    registers = Registers(read, bench.fake, bench.allocator().cache, bench.domains)
    registers.find_class("g", lambda schemata: pytest.fail(f"{schemata} was written"))
    assert registers.lacking


def test_a_group_that_root_made_is_not_changed_to_find_its_class():
    bench = Bench(TIED)
    registers = Registers(bench.fake.msr, bench.fake, bench.allocator().cache, bench.domains)
    registers.find_class("g", None)
    assert "mount resctrl with -o debug" in registers.lacking


def test_a_class_that_cannot_be_told_apart_is_not_guessed():
    bench, calls = Bench(TIED), []

    def wandering(cpu, register):
        calls.append(register)
        return bench.fake.msr(cpu, register) ^ len(calls)  # somebody else changes the others meanwhile

    allocator = prepared(bench, wandering)
    allocator.apply(SPLIT)
    assert "could not be found" in allocator.processor().lacking
    assert not allocator.processor().under


def test_without_registers_nothing_is_said_of_the_processor():
    bench = Bench(TIED)
    allocator = bench.prepared()
    allocator.apply(SPLIT)
    assert allocator.processor().how == ""
    assert not allocator.processor().under


def test_groups_begin_with_everything_although_their_class_was_found_by_changing_them():
    bench = Bench(TIED)
    allocator = prepared(bench)
    assert set(allocator.read_back().values()) == {"MB:0=100 L3:0=7ff"}


def test_the_fake_has_the_registers_of_its_machine():
    fake = Bench(TIED).fake
    assert fake.msr(0, MASKS_FROM) == 0x7FF
    assert fake.msr(0, DELAYS_FROM) == 0
    for cpu, register in ((0, LIMITS_FROM), (0, MASKS_FROM + 16), (0, DELAYS_FROM + 8), (99, MASKS_FROM)):
        with pytest.raises(OSError, match=r"error|No such device"):
            fake.msr(cpu, register)
    user = fake.processes.fork(uid=1000)
    with fake.acting(user), pytest.raises(PermissionError):
        fake.msr(0, MASKS_FROM)


def test_each_resource_has_registers_of_its_own():
    fake = FakeResctrl(owned.SAPPHIRE_RAPIDS, V6_12)
    fake.make("g")
    fake.write("g/schemata", "L2:2=f0\nL3:0=3f\nMB:0=40\n")
    held = {number: fake.msr(2, number + 1) for number in (MASKS_FROM, SECOND_MASKS_FROM, DELAYS_FROM)}
    assert held == {MASKS_FROM: 0x3F, SECOND_MASKS_FROM: 0xF0, DELAYS_FROM: 60}
    assert fake.msr(3, SECOND_MASKS_FROM + 1) == 0xFFFF  # another core's
    assert fake.msr(6, MASKS_FROM + 1) == 0x7FFF  # another socket's
    with pytest.raises(OSError, match="error"):
        fake.msr(0, SECOND_MASKS_FROM + 8)  # it has eight classes of second-level masks, and fifteen of the others
    assert fake.msr(0, MASKS_FROM + 8) == 0x7FFF


def test_code_and_data_of_the_second_level_have_two_registers_of_each_class():
    fake = FakeResctrl(owned.SAPPHIRE_RAPIDS, V6_12, options="cdpl2")
    fake.make("g")
    fake.write("g/schemata", "L2DATA:0=f\nL2CODE:0=f0\n")
    assert [fake.msr(0, SECOND_MASKS_FROM + place) for place in (2, 3)] == [0xF, 0xF0]
    assert fake.msr(0, MASKS_FROM + 1) == 0x7FFF


def test_amd_has_limits_of_both_kinds_of_memory_and_arm_has_no_registers():
    genoa = FakeResctrl(owned.GENOA, V6_12)
    genoa.write("schemata", "MB:0=64\nSMBA:0=32\n")
    assert [genoa.msr(0, number) for number in (LIMITS_FROM, SLOW_LIMITS_FROM)] == [64, 32]
    with pytest.raises(OSError, match="error"):
        genoa.msr(0, DELAYS_FROM)
    with pytest.raises(FileNotFoundError):
        FakeResctrl(owned.ARM_MPAM, V7_2).msr(0, MASKS_FROM)


@pytest.mark.parametrize("name", [name for name in owned.MACHINES if name != "hybrid-client"])
def test_registers_are_compared_on_every_machine_that_has_some(name):
    machine = owned.MACHINES[name]
    bench = Bench(machine.shape, machine.kernel, cpus=tuple(core[:1] for core in machine.cores[:2]))
    allocator = prepared(bench)
    share = (Share(member=LEAD, ways=0x3),)
    allocator.apply(share)
    readings = allocator.processor()
    if machine.shape.is_arm:
        assert readings.lacking.startswith("the processor's registers cannot be read (No such file or directory)")
    else:
        assert readings.under[share] == []


def test_a_register_is_eight_bytes_of_the_device_at_its_number(tmp_path):
    device = tmp_path / "dev/cpu/3/msr"
    device.parent.mkdir(parents=True)
    with device.open("wb") as file:
        for register, value in ((MASKS_FROM, 0x7FF), (LIMITS_FROM, 2048)):
            file.seek(register)
            file.write(value.to_bytes(8, "little"))
    assert read_msr(3, MASKS_FROM, tmp_path) == 0x7FF
    assert read_msr(3, LIMITS_FROM, tmp_path) == 2048
    device.chmod(0o444)
    assert read_msr(3, MASKS_FROM, tmp_path) == 0x7FF
    with pytest.raises(OSError, match="error"):
        read_msr(3, LIMITS_FROM + 8, tmp_path)  # behind the end: no such register
    with pytest.raises(FileNotFoundError):
        read_msr(4, MASKS_FROM, tmp_path)
