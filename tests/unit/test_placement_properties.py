"""What holds for any placement, on synthetic machines and invented ones; checked without the resolver's own rules."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.study.placement.layout import Cpu, Layout
from castmates.study.placement.refusals import place
from castmates.study.placement.search import Need, Seats
from castmates.study.placement.seats import SeatRules
from tests.unit.machines import MACHINES, layout


@st.composite
def invented(draw) -> Layout:
    """Up to eight cores with one or two threads in any arrangement."""
    cpus = []
    for core in range(draw(st.integers(1, 8))):
        llc, kind = draw(st.sampled_from([None, 0, 3])), draw(st.sampled_from(["core", "atom"]))
        for thread in range(draw(st.integers(1, 2))):
            one = Cpu(core + 8 * thread, core, llc, node=None if llc is None else llc // 3, package=0, kind=kind)
            cpus.append(replace(one, online=draw(st.integers(0, 9)) > 0, allowed=draw(st.integers(0, 9)) > 0))
    return Layout(tuple(cpus), memory=(0, 1), distances={(0, 1): 21, (1, 0): 21})


machines = st.one_of(st.sampled_from(sorted(MACHINES)).map(layout), invented())
sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
studies = st.lists(st.tuples(st.integers(1, 2), sizes), min_size=1, max_size=3, unique=True)
rules = st.builds(
    SeatRules,
    llc=st.sampled_from([None, None, "shared", "separate"]),
    smt=st.sampled_from([None, None, "avoid", "share", "idle-sibling"]),
    numa=st.sampled_from([None, "local", "remote"]),
    reserve=st.sampled_from([None, None, 1, 2]),
)


def needs_of(study: list[tuple[int, tuple[int, ...]]]) -> list[Need]:
    return [Need(f"x{lead}+{others}", f"x{lead}", (lead, *others)) for lead, others in study]


def attempt(asked: SeatRules, needs: list[Need], machine: Layout) -> list[Seats] | None:
    try:
        return place(asked, needs, machine, "study.yaml")
    except CastmatesError as refused:
        said = str(refused)
        assert "\n" not in said
        assert said.endswith(".")
        assert any(f"the mix {need.name}" in said for need in needs)
        return None


@settings(max_examples=120, deadline=None)
@given(machines, studies, rules)
def test_every_placement_keeps_its_promises(machine, study, asked):
    needs = needs_of(study)
    placed = attempt(asked, needs, machine)
    assert placed == attempt(asked, needs, machine)
    for need, mix in zip(needs, placed or [], strict=False):
        cpus = [[machine.by_id[cpu] for cpu in seat.cpus] for seat in mix]
        everyone = [cpu for seat in cpus for cpu in seat]
        assert tuple(len(seat) for seat in cpus) == need.cores
        assert len({cpu.id for cpu in everyone}) == len(everyone)
        assert all(cpu.online and cpu.allowed for cpu in everyone)
        assert not any(cpu.isolated for seat in cpus if len(seat) > 1 for cpu in seat)
        cores = [{cpu.core for cpu in seat} for seat in cpus]
        home, away = {cpu.llc for cpu in cpus[0]}, {cpu.llc for seat in cpus[1:] for cpu in seat}
        if asked.smt != "share":
            assert sum(map(len, cores)) == len(set().union(*cores))
        if asked.smt == "share":
            assert cores[0] & set().union(*cores[1:])
        if asked.smt in ("avoid", "idle-sibling"):
            assert sum(map(len, cores)) == len(everyone)
        if asked.smt == "idle-sibling":
            assert all(cpu.allowed for cpu in machine.cpus if cpu.online and cpu.core in set().union(*cores))
        if asked.llc == "shared":
            assert len(home | away) == 1
            assert None not in home
        if asked.llc == "separate":
            assert not home & away
        free = [core for core in machine.cores if core.first.core not in set().union(*cores)]
        assert len(free) >= (asked.reserve or 0)
        for seat, members in zip(mix, cpus, strict=True):
            homes = {cpu.node for cpu in members}
            assert set(seat.nodes) <= set(machine.memory)
            if asked.numa == "local":
                assert set(seat.nodes) == homes
            if asked.numa == "remote":
                assert len(seat.nodes) == 1
                assert homes.isdisjoint(seat.nodes)


@settings(max_examples=100, deadline=None)
@given(invented(), studies)
def test_without_rules_only_the_impossible_is_refused(machine, study):
    needs = needs_of(study)
    sizes = [len(core.cpus) for core in machine.cores]
    ones, twos = sizes.count(1), sizes.count(2)

    def possible(need: Need) -> bool:
        """Whole cores for everyone: a member with an odd number wants a core of one CPU, or wastes half of another."""
        odd = sum(size % 2 for size in need.cores)
        return sum(need.cores) + max(0, odd - ones) <= ones + 2 * twos

    placed = attempt(SeatRules(), needs, machine)
    assert (placed is not None) == all(map(possible, needs))
    if placed and len(machine.cores) > max(sum(need.cores) for need in needs):
        for lead in {need.lead for need in needs}:
            mixes = [mix for need, mix in zip(needs, placed, strict=True) if need.lead == lead]
            used = {machine.by_id[cpu].core for mix in mixes for seat in mix for cpu in seat.cpus}
            assert len(used) < len(machine.cores)


@settings(max_examples=50, deadline=None)
@given(machines, st.lists(sizes, min_size=1, max_size=4, unique=True))
def test_a_lead_sits_on_the_same_cpus_in_all_its_mixes(machine, others):
    placed = attempt(SeatRules(), needs_of([(1, one) for one in others]), machine)
    assert placed is None or len({mix[0].cpus for mix in placed}) == 1
