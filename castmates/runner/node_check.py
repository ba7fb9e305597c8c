"""Holds a node against the class that a launch was planned for, before anything is started on it."""

import platform
from collections.abc import Callable, Sequence

from castmates.errors import CastmatesError
from castmates.rdt.captured import facts_here
from castmates.study.machine_keys import MAKES_ONE
from castmates.study.node_facts import NodeFacts, difference
from castmates.study.spec import Launch, NodeClass


class OtherNode(CastmatesError):
    """This node is not of the class of the launch."""


def refuse_other_node(
    launch: Launch, machines: Sequence[NodeClass], read_facts: Callable[[], NodeFacts] = facts_here
) -> None:
    """Refuse a node that is not of the launch's class; nothing was started, so that the launch can run elsewhere."""
    name = launch.cohort.machine
    if not name:
        return
    wanted = next((machine for machine in machines if machine.name == name), None)
    if wanted is None:
        known = ", ".join(machine.name for machine in machines) or "none"
        raise CastmatesError(
            f"launch {launch.path} is for nodes of the class '{name}', which the plan does not know (it has: {known}); "
            "run the same command again, which plans anew."
        )
    if wanted.facts is None:  # a modelled machine is on every node
        return
    if why := difference(wanted.facts, read_facts()):
        raise OtherNode(
            f"launch {launch.path} is for nodes of the class '{name}' ({wanted.capture}), and {platform.node()} is not "
            f"one: {why}; let it run on a node of that class ('machines.{name}.slurm' in the study selects them), or "
            f"capture this node with `{MAKES_ONE} FILE` as another class."
        )
