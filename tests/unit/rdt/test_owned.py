"""The driver, the monitor, the doctor and the plan on every machine of the fake that users have."""

import json
from dataclasses import dataclass, replace

import pytest

from castmates.machine import resctrl_state
from castmates.machine.doctor.examine import as_json, default_class, examine
from castmates.machine.facts import machine_facts
from castmates.machine.topology import Topology, read_topology
from castmates.project import layout_of
from castmates.rdt.fake import V6_1, FakeResctrl, SetNumbers
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.capabilities import capabilities, read_cache
from castmates.rdt.resctrl.wanted_schemata import parse
from castmates.study import mixes, planning
from castmates.study.cache import Cache
from castmates.study.spec import REST, Share
from castmates.terminal.preview.isolation import rows
from tests.unit import sysfs
from tests.unit.makers import prepared, study, workloads
from tests.unit.rdt import owned
from tests.unit.rdt.fakes import Bench
from tests.unit.rdt.test_monitor import Steady, series, values, watching

MIB = 1 << 20
# Groups besides the default one, size of a way that a member can use, clusters of a cache, unit of bandwidth.
FACTS = {
    "skylake-sp": (7, 2.5 * MIB, 1, "%"),
    "ice-lake": (14, 4 * MIB, 1, "%"),
    "sapphire-rapids": (7, 7 * MIB, 1, "%"),  # its eight classes of second-level masks bound all others
    "granite-rapids-snc3": (7, 10.5 * MIB, 3, "%"),  # 504 MiB in 16 ways, for three clusters
    "rome": (15, MIB, 1, "1/8 GB/s"),
    "genoa": (15, 2 * MIB, 1, "1/8 GB/s"),
    "turin": (15, 2 * MIB, 1, "1/8 GB/s"),
    "hybrid-client": (7, None, 1, None),
    "arm-mpam": (63, 7 * MIB, 1, "%"),
}
WITH_MASKS = [name for name in owned.MACHINES if name != "hybrid-client"]
OTHERS = {
    "sapphire-rapids": "L2",
    "granite-rapids-snc3": "L2",
    "genoa": "SMBA",
    "turin": "SMBA",
    "hybrid-client": "L2",
    "arm-mpam": "L2",
}


@dataclass(frozen=True)
class Here:
    """A machine whose files were written."""

    name: str
    machine: owned.Owned
    topology: Topology
    cache: Cache
    fake: FakeResctrl

    def bench(self, source=None) -> Bench:
        """Two members on two cores of one last-level cache, of one cluster of it."""
        lead, other = self.machine.cores[:2]
        return Bench(self.machine.shape, self.machine.kernel, cpus=(lead[:1], other[:1]), source=source)


def here_of(name, tmp_path):
    machine = owned.MACHINES[name]
    fake = machine.record(tmp_path)
    cache = read_cache(tmp_path)
    assert cache is not None
    return Here(name, machine, read_topology(tmp_path), cache, fake)


@pytest.mark.parametrize("name", owned.MACHINES)
def test_what_the_files_show_is_what_the_machine_has(name, tmp_path):
    here = here_of(name, tmp_path)
    groups, way_bytes, clusters, unit = FACTS[name]
    cache, shape = here.cache, here.machine.shape
    assert (cache.groups, cache.way_bytes, cache.clusters) == (groups, way_bytes, clusters)
    assert (cache.bandwidth and cache.bandwidth.unit) == unit
    assert cache.ways == shape.ways
    assert cache.domains == (tuple(shape.domains) if shape.ways else ())
    assert set(cache.events) == set(shape.events)
    assert [llc.clusters for llc in here.topology.llcs] == [clusters] * len(shape.domains)
    if name == "arm-mpam":
        assert cache.shareable == 0  # every way is announced as shared: nothing is known of I/O there
    else:
        assert cache.shareable == shape.shareable


@pytest.mark.parametrize("name", owned.MACHINES)
def test_doctor_has_a_row_for_what_is_special(name, tmp_path):
    here = here_of(name, tmp_path)
    checks = examine(machine_facts(tmp_path, here.topology), here.topology)
    found = {check.name: check for check in checks}
    assert len(json.loads(as_json(checks))) == len(checks)
    assert found["CAT"].state == ("no" if name == "hybrid-client" else "yes")
    assert found["CMT"].state == ("no" if name == "hybrid-client" else "yes")
    assert found["MBM"].state == ("no" if name in ("hybrid-client", "arm-mpam") else "yes")
    assert ("other controls" in found) == (name in OTHERS)
    if name in OTHERS:
        assert f"({OTHERS[name]})" in found["other controls"].finding
        assert "leaves them as they are" in found["other controls"].finding
    assert ("sub-NUMA clusters" in found) == (name == "granite-rapids-snc3")


def test_doctor_shows_how_far_the_default_class_was_narrowed(tmp_path):
    fake = FakeResctrl(owned.SAPPHIRE_RAPIDS, owned.V6_12)
    for number, (text, row) in enumerate(
        (("", ("yes", "15 of 15 ways")), ("L3:0=ff;1=1ff\nMB:0=50\n", ("partly", "8 of 15 ways, 50 %")))
    ):
        if text:
            fake.write("schemata", text)
        root = tmp_path / str(number)
        owned.MACHINES["sapphire-rapids"].record(root, fake=fake)
        facts = machine_facts(root, read_topology(root))
        found = {check.name: check for check in examine(facts, read_topology(root))}
        assert (found["default class"].state, found["default class"].finding) == row
        assert parse(facts["resctrl"]["default_class"]) == parse(fake.read("schemata"))


def test_doctor_tells_a_cluster_from_its_cache_and_old_kernels_from_new_ones(tmp_path):
    for kernel, state in ((owned.V6_12, "yes"), (V6_1, "partly")):
        root = tmp_path / kernel.name
        replace(owned.MACHINES["granite-rapids-snc3"], kernel=kernel).record(root)
        topology = read_topology(root)
        found = {check.name: check for check in examine(machine_facts(root, topology), topology)}
        assert found["sub-NUMA clusters"].state == state
        assert "a program fills 168 of its 504 MiB" in found["sub-NUMA clusters"].finding
        assert read_cache(root).way_bytes == 10.5 * MIB  # with the old kernel it is sysfs that shows the clusters


def test_doctor_states_what_masks_without_code_mean(tmp_path):
    owned.MACHINES["sapphire-rapids"].record(tmp_path, options="cdp")
    topology = read_topology(tmp_path)
    found = {check.name: check for check in examine(machine_facts(tmp_path, topology), topology)}
    assert "holds for code too" in found["code masks"].finding


def shares_of(cache):
    """Half of the ways for each, and a throttle for the second one, as a plan has them."""
    half = (1 << cache.ways // 2) - 1
    wanted = {"%": 50, "1/8 GB/s": 64}[cache.bandwidth.unit]
    rest = cache.full & ~half
    return (Share(member="lead@0", ways=half), Share(member="other@1", ways=rest, bandwidth=wanted))


@pytest.mark.parametrize("name", WITH_MASKS)
def test_the_driver_gives_shares_and_leaves_all_other_lines_alone(name, tmp_path):
    here = here_of(name, tmp_path)
    bench, others = here.bench(), [line for line in ("L2", "SMBA") if line in parse(here.fake.read("schemata"))]
    before = bench.fake.read("schemata")
    allocator = bench.prepared()
    assert allocator.about()["left as they are"] == (", ".join(sorted(others, reverse=True)) or "nothing")
    group = allocator.groups["other@1"]
    untouched = {line: parse(bench.fake.read(f"{group}/schemata"))[line] for line in others}
    assert allocator.apply(shares_of(allocator.cache)) is True
    now = parse(bench.fake.read(f"{group}/schemata"))
    domain = next(iter(here.machine.shape.domains))
    assert now["L3"][domain] == allocator.cache.full & ~((1 << allocator.cache.ways // 2) - 1)
    assert now["MB"][domain] == {"%": 50, "1/8 GB/s": 64}[allocator.cache.bandwidth.unit] + 3 * (name == "arm-mpam")
    assert {line: now[line] for line in others} == untouched
    assert allocator.misplaced() == []
    allocator.restore()
    assert bench.groups() == []
    assert bench.fake.read("schemata") == before


def test_lines_that_somebody_has_narrowed_stay_narrow(tmp_path):
    """A second-level mask of a group that root gave to a user is not opened by a study."""
    here = here_of("sapphire-rapids", tmp_path)
    bench = here.bench()
    bench.fake.write("schemata", "L2:0=f\n")
    allocator = bench.prepared()
    allocator.apply([Share(member=REST, ways=0x3)])
    assert parse(bench.fake.read("schemata"))["L2"][0] == 0xF
    allocator.restore()
    assert parse(bench.fake.read("schemata"))["L2"][0] == 0xF


@pytest.mark.parametrize("options", ["cdp", "cdpl2", "cdp,cdpl2"])
def test_code_and_data_apart(options):
    bench = Bench(owned.SAPPHIRE_RAPIDS, owned.V6_12, options=options)
    allocator = bench.prepared()
    assert allocator.cache.cdp == ("cdp" in options.split(","))
    allocator.apply([Share(member="lead@0", ways=0xF)])
    now = parse(bench.fake.read(f"{allocator.groups['lead@0']}/schemata"))
    kinds = ("L3DATA", "L3CODE") if allocator.cache.cdp else ("L3",)
    assert [now[kind][0] for kind in kinds] == [0xF] * len(kinds)
    second = ("L2DATA", "L2CODE") if "cdpl2" in options else ("L2",)
    assert all(set(now[kind].values()) == {0xFFFF} for kind in second)
    assert allocator.cache.groups == {"cdp": 6, "cdpl2": 3, "cdp,cdpl2": 3}[options]


@pytest.mark.parametrize("name", [name for name, one in owned.MACHINES.items() if one.shape.ways and one.shape.cdp])
def test_code_and_data_apart_on_every_machine_that_has_it(name):
    machine = owned.MACHINES[name]
    bench = Bench(machine.shape, machine.kernel, "cdp", cpus=tuple(core[:1] for core in machine.cores[:2]))
    allocator = bench.prepared()
    allocator.apply([Share(member="lead@0", ways=0xF, code=0x30)])
    now = parse(bench.fake.read(f"{allocator.groups['lead@0']}/schemata"))
    domain = min(machine.shape.domains)
    assert (now["L3DATA"][domain], now["L3CODE"][domain]) == (0xF, 0x30)
    allocator.restore()
    assert bench.groups() == []


@pytest.mark.parametrize("name", [name for name, one in owned.MACHINES.items() if len(one.shape.events) > 1])
def test_traffic_of_members_is_read_where_it_is_counted(name):
    machine = owned.MACHINES[name]
    bench = Bench(machine.shape, machine.kernel, cpus=tuple(core[:1] for core in machine.cores[:2]), source=Steady())
    allocator = bench.prepared()
    monitor = watching(bench)
    samples = series(monitor)
    for member in bench.held:
        rates = values(samples, member, "mbm_total")
        assert rates
        assert None not in rates
        assert max(rates) > 0
    monitor.close()
    allocator.restore()


@pytest.mark.parametrize("name", WITH_MASKS)
def test_the_monitor_reads_what_members_hold(name, tmp_path):
    here = here_of(name, tmp_path)
    source, scale = SetNumbers(), here.machine.shape.scale
    bench = here.bench(source)
    allocator = bench.prepared()
    domain = next(iter(here.machine.shape.domains))
    source.lying[allocator.groups["lead@0"], domain] = 120 * scale
    monitor = bench.monitor()
    monitor.attach(bench.held)
    assert monitor.groups.missing == {}
    assert monitor.occupancies() == {"lead@0": 120 * scale, "other@1": 0}
    monitor.start()
    samples = monitor.stop()
    assert {s.value for s in samples if (s.subject, s.metric) == ("lead@0", "llc_occupancy")} == {120 * scale}
    monitor.close()
    allocator.restore()


def test_clusters_are_summed_by_the_kernel_and_an_old_one_reads_the_first_alone():
    for kernel, seen in ((owned.V6_12, 3), (V6_1, 1)):
        source = SetNumbers()
        fake = FakeResctrl(owned.GRANITE_RAPIDS_SNC3, kernel, source)
        source.lying["", 1] = 3 * 100 * 73728
        assert int(fake.read("mon_data/mon_L3_01/llc_occupancy")) == seen * 100 * 73728
        clusters = [name for name in fake.names("mon_data/mon_L3_01") if name.startswith("mon_sub")]
        assert clusters == (["mon_sub_L3_03", "mon_sub_L3_04", "mon_sub_L3_05"] if seen == 3 else [])
        if seen == 3:
            assert int(fake.read("mon_data/mon_L3_01/mon_sub_L3_04/llc_occupancy")) == 100 * 73728
        assert fake.read("size").splitlines()[-1].endswith(f"0={504 * MIB};1={504 * MIB}")  # of the whole cache


@pytest.mark.parametrize("name", owned.MACHINES)
def test_a_study_is_planned_for_it(name, tmp_path):
    here = here_of(name, tmp_path)
    programs = workloads("x", "a")
    one = study(["x"], ["a"], cache={"sweeps": [{"split": [2]}]})
    host = mixes.Host(layout_of(here.topology), here.cache)
    cast = mixes.resolve(one, mixes.Programs(programs, prepared(programs), "p"), host, "study.yaml")
    plan = planning.extend(one, cast, {"x": "", "a": ""}, "k")
    cohort = plan.launches[0].cohort
    under = [scene for scene in cohort.scenes if scene.partition == "split-2"]
    if name == "hybrid-client":
        assert not under
        assert plan.notes  # what was left out is listed
        return
    way = FACTS[name][1]
    lead = rows(cohort, under, here.cache, host.layout)[0]
    assert lead[0] == f"lead {cohort.lead.name}"
    assert lead[2] == f"2 ways, {2 * way / MIB:.4g} MiB"


def test_no_throttle_is_that_of_the_family_where_somebody_has_throttled_the_default_group():
    bench = Bench(owned.TURIN, owned.V7_2)
    bench.fake.write("schemata", "MB:" + ";".join(f"{domain}=64" for domain in owned.TURIN.domains) + "\n")
    allocator = ResctrlAllocator(replace(bench.mounted(), family=0x1A), beyond_site=True)
    allocator.prepare(bench.held)
    assert set(parse(bench.fake.read(f"{allocator.groups['lead@0']}/schemata"))["MB"].values()) == {4096}
    allocator.restore()


def test_what_is_no_throttle_before_zen_5_is_a_throttle_since(tmp_path):
    fake = FakeResctrl(owned.TURIN, owned.V7_2)
    fake.write("schemata", "MB:" + ";".join(f"{domain}=2048" for domain in owned.TURIN.domains) + "\n")
    owned.MACHINES["turin"].record(tmp_path, fake=fake)
    for family, state in ((0x19, "yes"), (0x1A, "partly")):
        sysfs.write(tmp_path / "proc/cpuinfo", f"cpu family : {family}\nflags : rdt_a cat_l3 mba")
        facts = machine_facts(tmp_path, read_topology(tmp_path))
        assert default_class(facts).state == state
        assert (read_cache(tmp_path).bandwidth.allowed == 2048) == (family == 0x1A)


def test_the_throttle_of_arm_is_a_binary_fraction():
    fake = FakeResctrl(owned.ARM_MPAM, owned.V7_2)
    for asked, shown in ((100, 100), (50, 53), (3, 3), (4, 3), (97, 100)):
        fake.write("schemata", f"MB:1={asked}\n")
        assert parse(fake.read("schemata"))["MB"][1] == shown
    assert capabilities(fake).bandwidth.least == 3


def test_throttles_of_arm_that_others_have_set_come_back_as_they_were(tmp_path):
    bench = here_of("arm-mpam", tmp_path).bench()
    for asked in (50, 5, 17, 93):
        bench.fake.write("schemata", f"MB:1={asked}\n")
        before = bench.fake.read("schemata")
        allocator = bench.prepared()
        allocator.apply([Share(member=REST, bandwidth=30)])
        assert (bench.fake.read("schemata") != before) == (asked > 30)  # nobody is given more than was found
        allocator.apply([])
        assert bench.fake.read("schemata") == before
        allocator.apply([Share(member=REST, bandwidth=30)])
        allocator.restore()
        assert bench.fake.read("schemata") == before


def test_the_journal_puts_a_throttle_of_arm_back_as_it_was(tmp_path, monkeypatch):
    fake, file = FakeResctrl(owned.ARM_MPAM, owned.V7_2), tmp_path / "schemata"

    def written(path, text):
        fake.write("schemata", text)
        path.write_text(fake.read("schemata"))

    monkeypatch.setattr(resctrl_state, "write_kernel", written)
    for asked in range(3, 101):
        written(file, f"MB:1={asked};2=100\n")
        before = resctrl_state.read_schemata(file)
        written(file, "MB:1=20\n")
        resctrl_state.write_schemata(file, before)
        assert resctrl_state.read_schemata(file) == before


def test_monitoring_ids_of_arm_belong_to_a_class():
    fake = FakeResctrl(owned.ARM_MPAM, owned.V7_2)
    made = [f"mon_groups/m{number}" for number in range(3)]
    for path in made:
        fake.make(path)
    with pytest.raises(OSError, match="No space left"):
        fake.make("mon_groups/m3")
    fake.make("g")  # another class has its own
    fake.make("g/mon_groups/m")
