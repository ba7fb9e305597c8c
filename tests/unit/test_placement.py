"""Where members sit on synthetic machines: what holds without rules, and what each rule changes."""

import re

import pytest

from castmates.errors import CastmatesError
from castmates.study.model import Placement
from castmates.study.placement.layout import Layout
from castmates.study.placement.refusals import place
from castmates.study.placement.search import Need
from castmates.study.placement.seats import rules_of
from tests.unit.machines import layout

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


def nodes(machine: str, *mix: int, **rules: object) -> list[tuple[int, ...]]:
    return [seat.nodes for seat in seats(machine, mix, **rules)[0]]


def refusal(machine: str, *mix: int, **rules: object) -> str:
    with pytest.raises(CastmatesError) as caught:
        seats(machine, mix, **rules)
    said = str(caught.value)
    assert said.startswith("study.yaml: ")
    assert said.endswith(".")
    assert "\n" not in said
    return said


def test_without_rules_members_sit_in_one_cache_on_whole_cores_beside_a_free_one():
    assert cpus(XEON, 2, 1, 1) == [(1, 2), (3,), (4,)]
    assert cpus(EPYC, 2, 1) == [(3, 4), (5,)]


def test_a_cache_that_holds_the_whole_mix_is_preferred_to_the_first_one():
    machine = layout(EPYC)
    placed = cpus(machine, 1, 1, 1)
    assert len({machine.by_id[cpu].llc for one in placed for cpu in one}) == 1


def test_a_lead_has_one_place_in_all_its_mixes_which_serves_the_largest():
    placed = seats(EPYC, (1, 1), (1, 1, 1), (1, 2))
    assert {mix[0].cpus for mix in placed} == {(3,)}
    assert cpus(EPYC, 1, 1)[0] == (1,)


def test_a_machine_that_a_mix_fills_has_no_housekeeping_core():
    assert cpus(LITTLE, 4, 4) == [(4, 5, 6, 7), (0, 1, 2, 3)]
    assert cpus(LITTLE, 1, 1, reserve=0) == [(4,), (5,)]
    assert cpus(XEON, 1, 1, reserve=0) == [(0,), (1,)]
    assert cpus(XEON, 1, 1, reserve=3) == [(3,), (4,)]


def test_two_cores_serve_two_members():
    two = Layout(tuple(cpu for cpu in layout(LITTLE).cpus if cpu.id < 2))
    assert cpus(two, 1, 1) == [(0,), (1,)]


def test_unequal_cores_are_not_mixed_and_the_fastest_are_taken():
    assert cpus(HYBRID, 2, 2) == [(0, 2), (4, 6)]
    assert cpus(LITTLE, 2, 2) == [(4, 5), (6, 7)]
    assert cpus(HYBRID, 4, 3) == [(12, 13, 14, 15), (16, 17, 18)]  # too many for six fast cores
    assert cpus(LITTLE, 4, 2) == [(4, 5, 6, 7), (1, 2)]  # too many for either kind, yet no member has both


def test_siblings_serve_only_where_cores_are_short_and_then_one_member():
    machine = layout(XEON)
    for lead, other in ((9, 8), (16, 8), (12, 12)):
        placed = cpus(machine, lead, other)
        cores = [{machine.by_id[cpu].core for cpu in one} for one in placed]
        assert cores[0].isdisjoint(cores[1])
        assert [len(one) for one in placed] == [lead, other]
    said = refusal(XEON, 29, 1, 1, 1)
    assert "asks for 32 cores (29 + 1 + 1 + 1), but there are 16 with 32 CPUs" in said
    assert "ask for 'placement.smt: share'" in said
    assert len(cpus(XEON, 29, 1, 1, 1, smt="share")) == 4


def test_one_cpu_cannot_serve_two():
    assert "asks for 2 cores (1 + 1), but only 1 CPU (0) may be used here" in refusal(SINGLE, 1, 1)


def test_offline_cpus_and_those_of_others_are_never_used():
    assert cpus(SMT_OFF, 7, 1) == [(0, 1, 2, 3, 4, 5, 6), (7,)]
    assert "but only 9 CPUs (0-7,21) may be used here" in refusal(SMT_OFF, 8, 2)
    used = {cpu for one in cpus(CONTAINER, 2, 2) for cpu in one}
    assert used <= {2, 18, 3, 19, 5, 12}


def test_members_of_one_thread_take_isolated_cpus_and_larger_ones_the_balanced():
    assert cpus(ISOLATED, 1, 1) == [(2,), (3,)]
    assert cpus(ISOLATED, 2, 1) == [(0, 1), (3,)]
    said = refusal(ISOLATED, 2, 2)
    assert "of the CPUs that may be used here 2-7 are isolated: the kernel spreads no threads there" in said
    said = refusal(ISOLATED, 2, 1, lead="2-3")
    assert "'placement.lead: 2-3' puts a member of several CPUs on isolated ones (2-3)" in said
    assert cpus(ISOLATED, 1, 1, lead="4", antagonists="5") == [(4,), (5,)]


def test_llc_shared_keeps_the_whole_mix_in_one_cache():
    machine = layout(SNC)
    assert {machine.by_id[cpu].llc for one in cpus(SNC, 4, 3, llc="shared") for cpu in one} == {0}
    said = refusal(EPYC, 4, 3, llc="shared")
    assert (
        "the mix x+a3: 'placement.llc: shared' needs one last-level cache with 7 cores free, but there are 16" in said
    )
    assert "(id 0: 3 cores, CPUs 0-2,48-50; " in said
    assert said.endswith("; and 12 more).")
    assert "there are 80 (id 0: 1 core, CPUs 0;" in refusal(ARM, 1, 1, llc="shared")


def test_llc_separate_takes_the_nearest_other_cache():
    assert cpus(SNC, 2, 2, llc="separate") == [(1, 2), (8, 9)]
    machine = layout(EPYC)
    lead, other = cpus(EPYC, 2, 2, llc="separate")
    assert (machine.by_id[lead[0]].llc, machine.by_id[other[0]].llc) == (0, 1)
    assert cpus(ARM, 1, 1, llc="separate") == [(1,), (2,)]
    assert refusal(LITTLE, 1, 1, llc="separate") == (
        "study.yaml: the mix x+a1: 'placement.llc: separate' needs a second last-level cache with 1 core free, but "
        "there is one (id 0: 8 cores, CPUs 0-7)."
    )


def test_a_cache_that_is_not_known_is_neither_shared_nor_separate():
    bare = Layout(tuple(layout(SINGLE).cpus[:0]))
    assert bare.cores == ()
    unknown = Layout(tuple(type(cpu)(cpu.id, cpu.core) for cpu in layout(LITTLE).cpus))
    for rule in ("shared", "separate"):
        with pytest.raises(CastmatesError, match="no last-level cache is known here"):
            cpus(unknown, 1, 1, llc=rule)


def test_smt_avoid_never_takes_siblings():
    assert cpus(XEON, 8, 7, smt="avoid") == [(8, 9, 10, 11, 12, 13, 14, 15), (1, 2, 3, 4, 5, 6, 7)]
    assert "'placement.smt: avoid' needs 17 cores, but there are 16 (CPUs 0-31)" in refusal(XEON, 9, 8, smt="avoid")


def test_smt_share_puts_antagonists_on_the_siblings_of_the_lead():
    assert cpus(XEON, 2, 1, 2, smt="share") == [(1, 2), (17,), (3, 18)]
    assert cpus(HYBRID, 1, 1, smt="share") == [(0,), (1,)]
    assert cpus(SMT_OFF, 2, 1, smt="share") == [(1, 5), (21,)]
    assert "no core with two usable CPUs is there" in refusal(ARM, 1, 1, smt="share")


def test_smt_idle_sibling_takes_cores_that_are_wholly_ours_and_keeps_one_for_the_runner():
    assert cpus(CONTAINER, 1, 1, smt="idle-sibling") == [(2,), (3,)]
    assert "wholly ours, and 1 for the runner, but there are 2 (CPUs 2-3,18-19)" in refusal(
        CONTAINER, 2, 1, smt="idle-sibling"
    )
    assert "'placement.reserve: 0' contradicts 'placement.smt: idle-sibling'" in refusal(
        XEON, 1, 1, smt="idle-sibling", reserve=0
    )
    assert cpus(LITTLE, 4, 4, smt="idle-sibling", reserve=0)  # no siblings, no contradiction


def test_memory_is_local_where_there_is_a_choice():
    assert nodes(XEON, 2, 1) == [(0,), (0,)]
    assert nodes(XEON, 2, 1, llc="separate") == [(0,), (1,)]
    assert nodes(SNC, 8, 1, smt="avoid")[0] == (2, 3)  # a member of both halves of a socket
    assert nodes(LITTLE, 1, 1) == nodes(CONTAINER, 1, 1) == [(), ()]
    assert nodes(LITTLE, 1, 1, numa="local") == [(0,), (0,)]


def test_memory_may_be_remote():
    assert nodes(XEON, 2, 1, numa="remote") == [(1,), (1,)]
    assert nodes(SNC, 1, 1, numa="remote") == [(1,), (1,)]  # the other half of the socket is the nearest
    assert (
        "'placement.numa: remote' needs a memory node besides those of the mix's CPUs, but memory may be used on "
        in (said := refusal(LITTLE, 1, 1, numa="remote"))
    )
    assert said.endswith("on node 0 only.")


def test_a_node_without_memory_borrows_from_the_nearest():
    assert nodes(MEMORY_ONLY, 1, 1, lead="0", antagonists="4") == [(0,), (0,)]
    assert nodes(MEMORY_ONLY, 1, 1, numa="remote") == [(2,), (2,)]
    said = refusal(MEMORY_ONLY, 1, 1, numa="local", antagonists="4")
    assert "'placement.numa: local' contradicts 'placement.antagonists: 4': it needs memory on the nodes" in said


def test_lists_win_over_preferences():
    assert cpus(XEON, 1, 1, lead="16", antagonists="0") == [(16,), (0,)]
    assert cpus(XEON, 2, 1, lead="9,1") == [(9, 1), (2,)]
    assert cpus(XEON, 1, 2, antagonists="1-4") == [(5,), (1, 2)]
    assert cpus(LITTLE, 1, 2, antagonists="0-7") == [(0,), (1, 2)]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            {"llc": "separate", "lead": "0", "antagonists": "1"},
            "'placement.llc: separate' contradicts 'placement.lead: 0'",
        ),
        (
            {"llc": "shared", "lead": "0", "antagonists": "8"},
            "'placement.lead: 0' and 'placement.antagonists: 8': it needs",
        ),
        ({"smt": "avoid", "lead": "0", "antagonists": "16"}, "'placement.smt: avoid' contradicts 'placement.lead: 0'"),
        ({"smt": "share", "lead": "0", "antagonists": "1"}, "it needs a second CPU on the lead's cores"),
        ({"reserve": 1, "lead": "0-15"}, "it needs 2 cores and 1 to be kept free besides those listed"),
    ],
)
def test_a_rule_that_contradicts_a_list_is_said_to(rules, said):
    told = refusal(XEON, 1, 1, **rules)
    assert said in told
    assert "contradicts" in told


@pytest.mark.parametrize(
    ("machine", "rules", "said"),
    [
        (XEON, {"lead": "0-1"}, "'placement.lead: 0-1' has 2 CPUs, but the lead asks for 3"),
        (XEON, {"lead": "0-2", "antagonists": "2"}, "'placement.antagonists: 2' has 0 CPUs besides the lead's"),
        (XEON, {"lead": "0-2,99"}, "'placement.lead' names CPU 99, which is not there; CPUs 0-31 may be used here"),
        (SMT_OFF, {"antagonists": "16"}, "'placement.antagonists' names CPU 16, which is offline"),
        (CONTAINER, {"antagonists": "6"}, "names CPU 6, which is not among those we were given"),
    ],
)
def test_lists_that_cannot_be_are_said(machine, rules, said):
    assert said in refusal(machine, 3, 1, **rules)


def test_rules_that_only_fail_together_are_named_together():
    said = refusal(XEON, 8, 1, llc="shared", smt="avoid")
    assert re.search(r"'placement.llc: shared' needs one last-level cache with 9 cores free, but there are 2", said)
    said = refusal(EPYC, 4, 1, llc="shared", reserve=47)
    assert "'placement.reserve: 47' needs 5 cores and 47 to be kept free, but there are 48" in said
    said = refusal(ARM, 1, 1, llc="shared", smt="share")
    assert "'placement.llc: shared' and 'placement.smt: share' cannot be met together" in said
