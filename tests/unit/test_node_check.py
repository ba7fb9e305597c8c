"""A node that is not of a launch's class refuses with one sentence, before anything is started."""

from types import SimpleNamespace

import pytest

from castmates.errors import CastmatesError
from castmates.runner.staging import refuse_other_node
from castmates.study.machine_keys import LastLevel, NodeFacts, difference
from castmates.study.spec import NodeClass

FACTS = NodeFacts(
    processor="AMD EPYC 7443",
    online="0-7",
    siblings=("0,4", "1,5"),
    packages=1,
    caches=(LastLevel(id=0, bytes=32 << 20, ways=16, cpus="0-7"),),
    nodes=("0: 0-7",),
    memory_bytes=64 * 10**9,
    ways=16,
    groups=15,
)
CHANGES = {
    "its processor is EPYC, and not AMD EPYC 7443": {"processor": "EPYC", "online": "0-3"},
    "its CPUs are 0-3, and not 0-7": {"online": "0-3"},
    "its siblings are none, and not 0,4; 1,5": {"siblings": ()},
    "it has sockets: 2, and not 1": {"packages": 2},
    "its memory nodes have the CPUs 0: 0-3; 1: 4-7, and not 0: 0-7": {"nodes": ("0: 0-3", "1: 4-7")},
    "it has last-level caches: 0, and not 1": {"caches": ()},
    "its last-level cache 0 has 16 MiB in 16 ways around CPUs 0-7, and not 32 MiB in 16 ways around CPUs 0-7": {
        "caches": (LastLevel(id=0, bytes=16 << 20, ways=16, cpus="0-7"),)
    },
    "its resctrl has 11 ways, and not 16": {"ways": 11},
    "its resctrl has 7 groups, and not 15": {"groups": 7},
    "it has 32.0 GB of memory, and not 64.0 GB": {"memory_bytes": 32 * 10**9},
}


def check(machine, facts):
    machines = [NodeClass(name="milan", capture="milan.json.gz", facts=FACTS)]
    launch = SimpleNamespace(path="chase-1/1", cohort=SimpleNamespace(machine=machine))
    refuse_other_node(launch, machines, lambda: facts)


@pytest.mark.parametrize("said", CHANGES)
def test_the_first_difference_is_named(said):
    other = FACTS.model_copy(update=CHANGES[said])
    assert difference(FACTS, other) == said
    with pytest.raises(CastmatesError) as refused:
        check("milan", other)
    assert said in str(refused.value)
    assert "machines.milan.slurm" in str(refused.value)
    assert "castmates doctor --capture" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_node_of_the_class_is_taken():
    check("milan", FACTS)
    # Firmware keeps a little memory; resctrl may not be mounted yet, which the launch itself will say.
    check("milan", FACTS.model_copy(update={"memory_bytes": 63 * 10**9, "ways": None, "groups": None}))
    check("", FACTS.model_copy(update={"processor": "any"}))  # a study without classes


def test_a_class_that_the_plan_does_not_know_is_refused():
    with pytest.raises(CastmatesError, match=r"the class 'rome', which the plan does not know \(it has: milan\)"):
        check("rome", FACTS)
