"""Where members sit on synthetic machines: what holds without rules, and what each rule changes."""

import pytest

from castmates.errors import CastmatesError
from castmates.study.model import Placement
from castmates.study.placement.layout import Layout
from castmates.study.placement.refusals import place
from castmates.study.placement.search import Need
from castmates.study.placement.seats import rules_of
from tests.unit.machines import layout
from tests.unit.snapshots import assert_as_before

XEON, SNC, EPYC = "synthetic-xeon-2s", "synthetic-xeon-2s-snc2", "synthetic-epyc-ccx"
HYBRID, ARM, LITTLE = "synthetic-hybrid-client", "synthetic-arm-no-l3", "synthetic-big-little"
SINGLE, SMT_OFF, CONTAINER = "synthetic-single-core", "synthetic-smt-off", "synthetic-container"
ISOLATED, MEMORY_ONLY = "synthetic-isolcpus", "synthetic-memory-only-node"


def seats(machine: str | Layout, *mixes: tuple[int, ...], **rules: object):
    """Seats of mixes that need so many CPUs: `(lead, antagonist, …)` each."""
    where = layout(machine) if isinstance(machine, str) else machine
    needs = [Need("x" + "".join(f"+a{size}" for size in mix[1:]), f"x{mix[0]}", mix) for mix in mixes]
    return place(rules_of(Placement.model_validate(rules), where, "study.yaml"), needs, where, "study.yaml")


def cpus(machine: str | Layout, *mix: int, **rules: object) -> list[tuple[int, ...]]:
    return [seat.cpus for seat in seats(machine, mix, **rules)[0]]


def told(machine: str, *mix: int, **rules: object) -> str:
    """The CPUs and memory nodes of each member, or why there are none."""
    try:
        return "; ".join(f"{seat.cpus} {seat.nodes}" for seat in seats(machine, mix, **rules)[0])
    except CastmatesError as problem:
        said = str(problem)
        assert said.startswith("study.yaml: ")
        assert said.endswith(".")
        assert "\n" not in said
        return said


PLACES = [
    # without rules: one cache, whole cores, beside a free one
    (XEON, 2, 1, 1), (EPYC, 2, 1), (EPYC, 1, 1), (LITTLE, 4, 4), (LITTLE, 1, 1, {"reserve": 0}),
    (XEON, 1, 1, {"reserve": 0}), (XEON, 1, 1, {"reserve": 3}),
    # unequal cores are not mixed, and the fastest are taken
    (HYBRID, 2, 2), (LITTLE, 2, 2), (HYBRID, 4, 3), (LITTLE, 4, 2),
    # siblings serve only where cores are short, and CPUs of others never
    (XEON, 29, 1, 1, 1), (XEON, 29, 1, 1, 1, {"smt": "share"}), (SINGLE, 1, 1), (SMT_OFF, 7, 1), (SMT_OFF, 8, 2),
    (CONTAINER, 2, 2),
    # isolated CPUs are for members of one thread
    (ISOLATED, 1, 1), (ISOLATED, 2, 1), (ISOLATED, 2, 2), (ISOLATED, 2, 1, {"lead": "2-3"}),
    (ISOLATED, 1, 1, {"lead": "4", "antagonists": "5"}),
    # one cache, or two
    (SNC, 4, 3, {"llc": "shared"}), (EPYC, 4, 3, {"llc": "shared"}), (ARM, 1, 1, {"llc": "shared"}),
    (SNC, 2, 2, {"llc": "separate"}), (EPYC, 2, 2, {"llc": "separate"}), (ARM, 1, 1, {"llc": "separate"}),
    (LITTLE, 1, 1, {"llc": "separate"}), (XEON, 2, 1, {"llc": "separate"}),
    # siblings
    (XEON, 8, 7, {"smt": "avoid"}), (XEON, 9, 8, {"smt": "avoid"}), (SNC, 8, 1, {"smt": "avoid"}),
    (XEON, 2, 1, 2, {"smt": "share"}), (HYBRID, 1, 1, {"smt": "share"}), (SMT_OFF, 2, 1, {"smt": "share"}),
    (ARM, 1, 1, {"smt": "share"}), (CONTAINER, 1, 1, {"smt": "idle-sibling"}),
    (CONTAINER, 2, 1, {"smt": "idle-sibling"}), (XEON, 1, 1, {"smt": "idle-sibling", "reserve": 0}),
    (LITTLE, 4, 4, {"smt": "idle-sibling", "reserve": 0}),
    # memory
    (LITTLE, 1, 1), (CONTAINER, 1, 1), (LITTLE, 1, 1, {"numa": "local"}), (XEON, 2, 1, {"numa": "remote"}),
    (SNC, 1, 1, {"numa": "remote"}), (LITTLE, 1, 1, {"numa": "remote"}), (MEMORY_ONLY, 1, 1, {"numa": "remote"}),
    (MEMORY_ONLY, 1, 1, {"lead": "0", "antagonists": "4"}), (MEMORY_ONLY, 1, 1, {"numa": "local", "antagonists": "4"}),
    # lists win over preferences
    (XEON, 1, 1, {"lead": "16", "antagonists": "0"}), (XEON, 2, 1, {"lead": "9,1"}),
    (XEON, 1, 2, {"antagonists": "1-4"}),
    (LITTLE, 1, 2, {"antagonists": "0-7"}),
    # and contradict rules
    (XEON, 1, 1, {"llc": "separate", "lead": "0", "antagonists": "1"}),
    (XEON, 1, 1, {"llc": "shared", "lead": "0", "antagonists": "8"}),
    (XEON, 1, 1, {"smt": "avoid", "lead": "0", "antagonists": "16"}),
    (XEON, 1, 1, {"smt": "share", "lead": "0", "antagonists": "1"}), (XEON, 1, 1, {"reserve": 1, "lead": "0-15"}),
    # lists that cannot be
    (XEON, 3, 1, {"lead": "0-1"}), (XEON, 3, 1, {"lead": "0-2", "antagonists": "2"}), (XEON, 3, 1, {"lead": "0-2,99"}),
    (SMT_OFF, 3, 1, {"antagonists": "16"}), (CONTAINER, 3, 1, {"antagonists": "6"}),
    # rules that fail together
    (XEON, 8, 1, {"llc": "shared", "smt": "avoid"}), (EPYC, 4, 1, {"llc": "shared", "reserve": 47}),
    (ARM, 1, 1, {"llc": "shared", "smt": "share"}),
]  # fmt: skip


def test_places():
    """The CPUs and memory nodes of every member, or the refusal, case by case in the file of words."""
    cases = [each if isinstance(each[-1], dict) else (*each, {}) for each in PLACES]
    assert_as_before(
        "placement", {f"{' '.join(map(str, mix))} {rules or ''}".strip(): told(*mix, **rules) for *mix, rules in cases}
    )


def test_a_cache_that_holds_the_whole_mix_is_preferred_to_the_first_one():
    machine = layout(EPYC)
    placed = cpus(machine, 1, 1, 1)
    assert len({machine.by_id[cpu].llc for one in placed for cpu in one}) == 1


def test_a_lead_has_one_place_in_all_its_mixes_which_serves_the_largest():
    placed = seats(EPYC, (1, 1), (1, 1, 1), (1, 2))
    assert {mix[0].cpus for mix in placed} == {(3,)}


def test_two_cores_serve_two_members():
    two = Layout(tuple(cpu for cpu in layout(LITTLE).cpus if cpu.id < 2))
    assert cpus(two, 1, 1) == [(0,), (1,)]


@pytest.mark.parametrize(("lead", "other"), [(9, 8), (16, 8), (12, 12)])
def test_siblings_serve_one_member(lead, other):
    machine = layout(XEON)
    placed = cpus(machine, lead, other)
    cores = [{machine.by_id[cpu].core for cpu in one} for one in placed]
    assert cores[0].isdisjoint(cores[1])
    assert [len(one) for one in placed] == [lead, other]


def test_a_cache_that_is_not_known_is_neither_shared_nor_separate():
    bare = Layout(tuple(layout(SINGLE).cpus[:0]))
    assert bare.cores == ()
    unknown = Layout(tuple(type(cpu)(cpu.id, cpu.core) for cpu in layout(LITTLE).cpus))
    for rule in ("shared", "separate"):
        with pytest.raises(CastmatesError, match="no last-level cache is known here"):
            cpus(unknown, 1, 1, llc=rule)
