"""What was captured of a machine is replayed by the fake: every file of its resctrl shows the same again."""

from dataclasses import replace

import pytest

from castmates.errors import CastmatesError
from castmates.machine.capture.capture import opened, record
from castmates.rdt.fake import (
    AMD_CHIPLETS,
    HASWELL,
    LAB,
    LAB_ALLOCATION_ONLY,
    LAB_MONITORING_ONLY,
    LAB_NO_THROTTLE,
    LAB_TWO_SOCKETS,
    NO_RDT,
    SUB_NUMA,
    V6_1,
    V6_12,
    V7_2,
    FakeResctrl,
    SetNumbers,
)
from castmates.rdt.fake.recorded import replay
from castmates.rdt.resctrl.capabilities import capabilities
from castmates.rdt.resctrl.wanted_schemata import is_decimal, parse
from tests.unit import sysfs
from tests.unit.rdt import owned, trees

RELEASES = {V6_1: "6.1.0-18-amd64", V6_12: "6.12.9-generic", V7_2: "7.2.0"}


def lay_out(fake, kernel, root):
    """Write the machine of a fake as it would lie below its root."""
    shape = fake.shape
    caches = [sysfs.Cache(3, shape.cache_bytes // 1024, 16, list(shape.domains.values()), list(shape.domains))]
    nodes = {node: shape.cpus_of_node(at, node) for at, inner in shape.nodes.items() for node in inner}
    machine = sysfs.Machine([(cpu,) for cpu in sorted(shape.cpus)], caches, {0: shape.cpus}, nodes or {0: shape.cpus})
    sysfs.build(root, machine)
    sysfs.write(root / "proc/sys/kernel/osrelease", RELEASES[kernel])
    sysfs.write(root / "proc/cpuinfo", f"processor\t: 0\nflags\t\t: rdt_a{' cdp_l3' if shape.cdp else ''}")
    sysfs.write(root / "proc/filesystems", "nodev\tresctrl" if fake.known else "nodev\tproc")
    if fake.mounted:
        options = fake.proc("mounts").split()[3].removeprefix("rw,relatime").strip(",")
        texts = trees.files_of(fake) | {"tasks": "1\n"} | {f"{group.path}/tasks": "7\n" for group in fake.groups[1:]}
        trees.record(root, texts, options=",".join(filter(None, ["rw", options])))
    return root


def captured(fake, kernel, tmp_path):
    file = tmp_path / "machine.json.gz"
    record(file, lay_out(fake, kernel, tmp_path / "root"))
    return file


@pytest.mark.parametrize("kernel", [V6_1, V6_12, V7_2], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (LAB, ""),
        (LAB, "cdp"),
        (LAB, "mba_MBps"),
        (LAB_TWO_SOCKETS, ""),
        (LAB_NO_THROTTLE, ""),
        (LAB_ALLOCATION_ONLY, ""),
        (LAB_MONITORING_ONLY, ""),
        (AMD_CHIPLETS, ""),
        (SUB_NUMA, ""),
        (HASWELL, ""),
    ],
)
def test_a_captured_resctrl_shows_the_same_again(shape, options, kernel, tmp_path):
    numbers = SetNumbers()
    fake = FakeResctrl(shape, kernel, numbers, options)
    fill(fake, numbers)
    with opened(captured(fake, kernel, tmp_path)) as root:
        again = replay(root)
    assert trees.files_of(again) == trees.files_of(fake)
    assert again.proc("mounts") == fake.proc("mounts")
    assert capabilities(again) == capabilities(fake)
    assert (again.shape.domains, again.shape.nodes) == (shape.domains, shape.nodes)


def fill(fake, numbers):
    """Give groups of a machine something of everything that it has."""
    shape = fake.shape
    groups = ["group1", "group2"] if shape.allocates else []
    monitoring = (
        ["mon_groups/group1", *(f"{group}/mon_groups/group1" for group in groups[:1])] if shape.monitors else []
    )
    for group in (*groups, *monitoring):
        fake.make(group)
    for number, (resource, values) in enumerate(parse(fake.read("schemata")).items()):
        last = max(values)
        half = f"{values[last] // 2}" if is_decimal(resource) else f"{values[last] >> 1 + number:x}"
        fake.write("group2/schemata", f"{resource}:{last}={half}\n")
        if not is_decimal(resource):
            fake.write("schemata", f"{resource}:{min(values)}={values[last] >> 2:x}\n")
    if shape.allocates:
        fake.write("group2/cpus_list", "1\n")
    for number, group in enumerate(fake.groups):
        for domain in shape.domains:
            numbers.lying[group.path, domain] = (number + 1) * (domain + 2) * 3 * shape.scale
            numbers.moved[group.path, domain] = (number + 5) * (domain + 1) * 8 * shape.scale


@pytest.mark.parametrize("name", owned.MACHINES)
def test_the_machines_that_users_have_are_replayed_with_all_that_they_have(name, tmp_path):
    machine, numbers = owned.MACHINES[name], SetNumbers()
    fake = FakeResctrl(machine.shape, machine.kernel, numbers)
    fill(fake, numbers)
    machine.record(tmp_path / "root", fake=fake)
    again = replayed(tmp_path)
    assert trees.files_of(again) == trees.files_of(fake)
    # Ways that are tied and throttles that are rounded show in no file.
    throttle = machine.shape.throttle and replace(machine.shape.throttle, becomes={})
    scale = machine.shape.scale if machine.shape.monitors else again.shape.scale
    assert in_order(again.shape) == in_order(replace(machine.shape, tied=0, throttle=throttle, scale=scale))


def in_order(shape):
    """A shape with the CPUs of each cache in order."""
    second = shape.second and replace(shape.second, caches=sorted_cpus(shape.second.caches))
    return replace(shape, domains=sorted_cpus(shape.domains), second=second)


def sorted_cpus(caches):
    return {number: tuple(sorted(cpus)) for number, cpus in caches.items()}


def test_the_class_of_io_and_the_counters_of_groups_are_replayed(tmp_path):
    machine, numbers = owned.MACHINES["turin"], SetNumbers()
    fake = FakeResctrl(machine.shape, machine.kernel, numbers)
    fill(fake, numbers)
    fake.write("info/L3/io_alloc", "1\n")
    fake.write("info/L3/io_alloc_cbm", "*=f0\n")
    fake.write("info/L3/io_alloc_cbm", "3=3\n")
    fake.write("group2/mbm_L3_assignments", "mbm_local_bytes:*=_\n")
    fake.write("group1/mbm_L3_assignments", "mbm_total_bytes:4=_\n")
    machine.record(tmp_path / "root", fake=fake)
    again = replayed(tmp_path)
    assert trees.files_of(again) == trees.files_of(fake)
    assert again.read("info/L3/io_alloc_cbm").startswith("0=f0;1=f0;2=f0;3=3;4=f0;")
    assert again.read("group2/mon_data/mon_L3_07/mbm_local_bytes") == "Unassigned\n"
    fake.write("info/L3_MON/mbm_assign_mode", "default\n")
    machine.record(tmp_path / "other" / "root", fake=fake)
    assert replayed(tmp_path / "other").read("info/L3_MON/mbm_assign_mode") == "[default]\nmbm_event\n"


def replayed(tmp_path):
    """What is made of the machine below `root`, by way of a capture."""
    file = tmp_path / "machine.json.gz"
    record(file, tmp_path / "root")
    with opened(file) as root:
        return replay(root)


def test_failures_and_exclusive_groups_are_replayed(tmp_path):
    fake = FakeResctrl(LAB, V6_12)
    fake.make("group1")
    fake.write("group1/schemata", "L3:0=f\n")
    fake.write("schemata", "L3:0=ff0\n")
    fake.write("group1/mode", "exclusive\n")
    fake.fail("group1", "mbm_total_bytes", "Unavailable")
    fake.fail("", "llc_occupancy", "Error")
    with opened(captured(fake, V6_12, tmp_path)) as root:
        again = replay(root)
    assert again.read("group1/mode") == "exclusive\n"
    assert again.read("group1/mon_data/mon_L3_00/mbm_total_bytes") == "Unavailable\n"
    assert again.read("mon_data/mon_L3_00/llc_occupancy") == "Error\n"
    with pytest.raises(OSError, match="Invalid argument"):
        again.write("schemata", "L3:0=fff\n")


def test_a_machine_without_resctrl_is_replayed_without_it(tmp_path):
    with opened(captured(FakeResctrl(NO_RDT, V6_1), V6_1, tmp_path)) as root:
        assert not replay(root).known


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda root: (root / "proc/self/mountinfo").write_text(""), "it was not mounted when it was captured"),
        (
            lambda root: (root / "sys/fs/resctrl/schemata").write_text("L3:7=fff\n"),
            "it names a cache 7, and sysfs has no",
        ),
        (lambda root: (root / "sys/fs/resctrl/schemata").unlink(), "No such file"),
        (lambda root: (root / "sys/fs/resctrl/info/L3/cbm_mask").write_text("many\n"), "invalid literal"),
    ],
)
def test_a_capture_that_cannot_be_replayed_is_a_sentence(change, sentence, tmp_path):
    root = lay_out(FakeResctrl(LAB, V6_1), V6_1, tmp_path / "root")
    change(root)
    file = tmp_path / "machine.json.gz"
    record(file, root)
    with (
        opened(file) as opened_root,
        pytest.raises(CastmatesError, match="cannot be replayed from this capture") as problem,
    ):
        replay(opened_root)
    assert sentence in str(problem.value)
