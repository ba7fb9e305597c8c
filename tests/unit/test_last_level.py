"""Sizes in shares of the cache, on machines that we do not have."""

import pytest

from castmates.study.last_level import ASSUMED, CachePlace, LastLevel, last_level, sized_workload
from castmates.study.mixes import Host, Programs, resolve
from castmates.study.model import Workload
from castmates.study.placement.layout import Cpu, Layout
from tests.unit.makers import prepared, study, workloads

MIB, GIB = 1 << 20, 1 << 30


def machine(llcs: int, cpus_of_each: int, mib: float, nodes_of_each: int = 1, ways: int = 16) -> Layout:
    """So many last-level caches of a size, the CPUs of each spread over so many memory nodes."""
    per_node = cpus_of_each // nodes_of_each
    cpus = [Cpu(cpu, core=cpu, llc=cpu // cpus_of_each, node=cpu // per_node) for cpu in range(llcs * cpus_of_each)]
    sizes = {llc: int(mib * MIB) for llc in range(llcs)}
    return Layout(tuple(cpus), llc_bytes=sizes, llc_ways=dict.fromkeys(sizes, ways))


GRANITE = machine(2, 120, 504)  # Granite Rapids
GRANITE_SNC3 = machine(2, 120, 504, nodes_of_each=3)
GENOA = machine(12, 8, 32)


def kernel(words: str, **options: object) -> Workload:
    return Workload(command=words, options=options, environment="native", progress="heartbeat", memory="0.1 GB")


def bytes_of(workload: Workload, place: CachePlace) -> int:
    words = sized_workload(workload, place).words
    return int(words[words.index("--bytes") + 1])


def place(layout: Layout, *cpus: int, bits: int = 0, memory: int | None = 1 << 40) -> CachePlace:
    return CachePlace(cpus, last_level(layout, cpus, bits), memory)


def test_what_can_be_used_is_a_clusters_part_and_a_ccx():
    assert last_level(GRANITE, [0]) == LastLevel(504 * MIB, 16, 1)
    assert last_level(GRANITE_SNC3, [0]) == LastLevel(168 * MIB, 16, 1)  # resctrl's `size` has all 504
    assert last_level(GRANITE_SNC3, [0, 40, 41]) == LastLevel(168 * MIB, 16, 2)
    assert last_level(GRANITE_SNC3, [0, 40], nodes=[1]) == LastLevel(168 * MIB, 16, 1)  # its memory is in one
    assert last_level(GRANITE_SNC3, [0], nodes=[0, 1]) == LastLevel(168 * MIB, 16, 2)
    assert last_level(GRANITE_SNC3, [0], nodes=[4]) == LastLevel(168 * MIB, 16, 1)  # far memory
    assert last_level(GENOA, [0, 1]) == LastLevel(32 * MIB, 16, 1)
    assert last_level(GENOA, [0, 8, 16]) == LastLevel(32 * MIB, 16, 3)
    assert last_level(Layout((Cpu(0, 0, llc=0),)), [0]) is None


def test_a_way_is_a_bit_of_a_mask_where_masks_can_be_set():
    assert bytes_of(kernel("capacity", bytes="2ways"), place(GRANITE, 0)) == 63 * MIB
    assert bytes_of(kernel("capacity", bytes="2ways"), place(machine(1, 2, 30, ways=20), 0, bits=15)) == 4 * MIB


@pytest.mark.parametrize(
    ("layout", "cpu_count"), [(GRANITE, 1), (GRANITE, 60), (GRANITE_SNC3, 40), (GENOA, 8), (GENOA, 64)]
)
def test_streaming_never_fits_into_the_caches_of_its_threads_however_many_they_are(layout, cpu_count):
    here = place(layout, *range(cpu_count))
    assert here.cache is not None
    size = bytes_of(kernel("stream", bytes="4llc", threads="{cpus}"), here)
    assert size >= 4 * here.cache.total
    assert size >= 8 * MIB * cpu_count  # nor does the part of one into its own second level


def test_a_dial_takes_its_share_of_a_large_cache_and_of_a_small_one():
    assert bytes_of(kernel("capacity", bytes="0.5llc"), place(GRANITE, 0)) == 252 * MIB
    assert bytes_of(kernel("capacity", bytes="0.5llc"), place(GENOA, 0)) == 16 * MIB  # no floor: its name says half


def test_what_is_to_be_larger_has_a_floor_and_leaves_memory_to_others():
    assert bytes_of(kernel("stream", bytes="4llc"), place(machine(1, 2, 4), 0)) == 64 * MIB
    assert bytes_of(kernel("stream", bytes="4llc"), place(GRANITE, 0, memory=8 * GIB)) == GIB
    assert bytes_of(kernel("stream", bytes="4llc"), place(GRANITE, 0, memory=GIB // 4)) == 64 * MIB


def test_where_the_kernel_shows_no_cache_one_is_assumed():
    assert bytes_of(kernel("stream", bytes="4llc"), CachePlace((0,), None)) == 4 * ASSUMED.bytes


def test_the_memory_that_a_size_takes_is_known_to_the_plan():
    one = sized_workload(kernel("stream", bytes="4llc"), place(GRANITE, 0))
    assert one.memory_bytes == pytest.approx(0.1e9 + 9 / 8 * 2016 * MIB, rel=1e-3)


def test_parts_of_a_mix_and_nothing_else():
    mixed = kernel("mix chase:1000:8M chase:1000:0.5llc stream.copy:3:4llc", huge=True)
    parts = sized_workload(mixed, place(GENOA, 0)).words
    assert parts == ["mix", "chase:1000:8M", f"chase:1000:{16 * MIB}", f"stream.copy:3:{128 * MIB}", "--huge"]
    plain = kernel("stream", bytes="64M", mode="triad")
    assert sized_workload(plain, place(GENOA, 0)) is plain
    foreign = Workload(command="mine --bytes 4llc")
    assert sized_workload(foreign, place(GENOA, 0)) is foreign


def test_a_plan_has_bytes_and_what_each_workload_takes():
    programs = workloads("x", stream=kernel("stream", bytes="4llc"))
    there = Programs(programs, prepared(programs), "p")
    cast = resolve(study(["x"], ["stream"]), there, Host(machine(1, 4, 32), memory=1 << 40), "study.yaml")
    (stream,) = [member for member in cast.members.values() if member.workload == "stream"]
    assert stream.command == ("stream", "--bytes", str(128 * MIB))
    assert cast.memory["stream"] > 128 * MIB
