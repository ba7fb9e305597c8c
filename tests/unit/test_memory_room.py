"""Memory that is limited or taken: what may be used, what is free, what is cut, and what is refused before a launch."""

import pytest

from castmates.errors import CastmatesError
from castmates.machine.probes import free_memory, limited_memory, usable_memory
from castmates.runner.staging import refuse_too_little
from castmates.study.last_level import shortened
from castmates.study.mixes import Host, Programs, resolve
from tests.unit import sysfs
from tests.unit.makers import prepared, study, workloads
from tests.unit.test_last_level import GIB, GRANITE, MIB, kernel, machine, place
from tests.unit.windows_maker import cohort, mix


def box(root, **files):
    """8 GiB, 6 of them free, in the group /job/step."""
    sysfs.write(root / "proc/meminfo", f"MemTotal: {8 << 20} kB\nMemAvailable: {6 << 20} kB")
    for name, text in files.items():
        sysfs.write(root / name.replace("__", "/"), text)
    return root


V2 = {"proc__self__cgroup": "0::/job/step"}
V1 = {"proc__self__cgroup": "5:memory:/job/step\n1:cpu:/\n0::/"}


@pytest.mark.parametrize(
    ("files", "limit", "free"),
    [
        ({}, None, 6 * GIB),
        (V2 | {"sys__fs__cgroup__job__memory.max": "max"}, None, 6 * GIB),
        (V1 | {"sys__fs__cgroup__memory__memory.limit_in_bytes": 2**63 - 4096}, None, 6 * GIB),  # what no limit is
        (
            V2
            | {
                "sys__fs__cgroup__job__memory.max": 2 * GIB,
                "sys__fs__cgroup__job__memory.current": GIB,
                "sys__fs__cgroup__job__memory.stat": f"anon 1\ninactive_file {GIB // 2}\nactive_file {GIB // 4}",
            },
            2 * GIB,
            7 * GIB // 4,  # the file cache is given back
        ),
        (
            V1
            | {
                "sys__fs__cgroup__memory__job__step__memory.limit_in_bytes": 3 * GIB,
                "sys__fs__cgroup__memory__job__step__memory.usage_in_bytes": 4 * GIB,  # of another group's file cache
                "sys__fs__cgroup__memory__job__step__memory.stat": f"total_inactive_file {GIB}\ninactive_file 0",
            },
            3 * GIB,
            0,
        ),
    ],
)
def test_what_may_be_used_and_what_is_free(tmp_path, files, limit, free):
    root = box(tmp_path, **files)
    assert limited_memory(root) == limit
    assert usable_memory(root) == limit or (limit is None and usable_memory(root) == 8 * GIB)
    assert free_memory(root) == free


def test_nothing_is_known_of_a_machine_that_shows_nothing(tmp_path):
    assert (usable_memory(tmp_path), limited_memory(tmp_path), free_memory(tmp_path)) == (None, None, None)


LAUNCH = cohort("c", mix("lead@0", "stream@1"))


def test_a_launch_that_does_not_fit_is_refused_before_the_kernel_kills():
    needs = {"lead": GIB, "stream": 2 * GIB}
    refuse_too_little(LAUNCH, needs, {}, lambda: 3 * GIB)
    refuse_too_little(LAUNCH, needs, {}, lambda: None)
    refuse_too_little(LAUNCH, {}, {}, lambda: 0)  # what it takes is not known: of older plans
    with pytest.raises(CastmatesError, match=r"about 3\.2 GB of memory \(lead 1\.1 \+ stream 2\.1\), and only 3\.2 GB"):
        refuse_too_little(LAUNCH, needs, {}, lambda: 3 * GIB - 1)
    with pytest.raises(CastmatesError, match=r"stream 2\.1 \+ the eviction of the cache 1\.1"):
        refuse_too_little(LAUNCH, needs, {"evict@2": GIB}, lambda: 3 * GIB)


@pytest.mark.parametrize("memory", [None, 1 << 40, 64 * GIB])
def test_what_is_not_cut_is_not_named(memory):
    assert shortened(kernel("stream", bytes="4llc"), place(GRANITE, 0, memory=memory)) == ""
    assert shortened(kernel("stream", bytes="64M"), place(GRANITE, 0, memory=GIB)) == ""
    assert shortened(kernel("capacity", bytes="0.5llc"), place(GRANITE, 0, memory=GIB)) == ""


def test_a_size_that_a_limit_cuts_is_named_in_the_plan_also_where_it_is_still_larger_than_the_cache():
    assert "its 4llc would be 2016 MiB, and it takes 1024 MiB, because only 8192 MiB" in shortened(
        kernel("stream", bytes="4llc"), place(GRANITE, 0, memory=8 * GIB)
    )
    assert "its 4llc would be 2016 MiB" in shortened(
        kernel("mix chase:1:8M stream.copy:3:4llc"), place(GRANITE, 0, memory=GIB)
    )
    programs = workloads("x", stream=kernel("stream", bytes="4llc"))
    there = Programs(programs, prepared(programs), "p")
    layout = machine(1, 4, 200)
    cut = resolve(study(["x"], ["stream"]), there, Host(layout, memory=5 * GIB), "study.yaml")
    assert [one for one in cut.cautions if "would be 800 MiB, and it takes 512 MiB" in one]
    whole = resolve(study(["x"], ["stream"]), there, Host(layout, memory=64 * GIB), "study.yaml")
    assert not [one for one in whole.cautions if "would be" in one]
    assert 512 * MIB > 2 * 200 * MIB, "the other caution is silent here"
