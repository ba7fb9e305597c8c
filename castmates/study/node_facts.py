"""What a node must have to be of a class, and the first thing in which it differs."""

from collections.abc import Iterator, Mapping
from typing import Any

from castmates.study.frozen import Frozen

SAME_MEMORY = 0.05  # firmware keeps a little more on one node than on another


class LastLevel(Frozen):
    """One last-level cache."""

    id: int
    bytes: int | None
    ways: int | None
    cpus: str


class NodeFacts(Frozen):
    """What decides where members sit, how large they are, and which partitions they get."""

    processor: str | None
    online: str  # CPUs
    siblings: tuple[str, ...]  # CPUs of the same core, where there are several
    packages: int | None
    caches: tuple[LastLevel, ...]
    nodes: tuple[str, ...]  # memory nodes with their CPUs: "0: 0-7"
    memory_bytes: int | None
    ways: int | None  # bits of resctrl's masks; None where resctrl is not mounted
    groups: int | None  # that it has room for


def recorded(machine: Mapping[str, Any]) -> NodeFacts | None:
    """The same of a study's machine.json; None where it lacks the topology, as that of a model does."""
    topology = machine.get("topology") or {}
    if not topology.get("online"):
        return None
    return NodeFacts(
        processor=machine.get("cpu_model"),
        online=topology["online"],
        siblings=tuple(topology.get("siblings") or ()),
        packages=topology.get("packages"),
        caches=tuple(
            LastLevel(id=each.get("id", 0), bytes=each.get("bytes"), ways=each.get("ways"), cpus=each.get("cpus", ""))
            for each in topology.get("llcs") or ()
        ),
        nodes=tuple(f"{each.get('id')}: {each.get('cpus')}" for each in topology.get("nodes") or ()),
        memory_bytes=machine.get("memory_bytes"),
        ways=None,
        groups=None,
    )


def difference(wanted: NodeFacts, found: NodeFacts) -> str:
    """The first thing that a node has and a class has not, as a clause; "" where it is of the class."""
    return next(_differences(wanted, found), "")


def _differences(wanted: NodeFacts, found: NodeFacts) -> Iterator[str]:
    one = {
        "its processor is": (found.processor or "unknown", wanted.processor or "unknown"),
        "its CPUs are": (found.online, wanted.online),
        "its siblings are": (_some(found.siblings), _some(wanted.siblings)),
        "it has sockets:": (found.packages, wanted.packages),
        "its memory nodes have the CPUs": (_some(found.nodes), _some(wanted.nodes)),
        "it has last-level caches:": (len(found.caches), len(wanted.caches)),
    }
    for what, (here, there) in one.items():
        if here != there:
            yield f"{what} {here}, and not {there}"
    for cache, planned in zip(found.caches, wanted.caches, strict=False):
        if cache != planned:
            yield f"its last-level cache {cache.id} has {_words(cache)}, and not {_words(planned)}"
    for what, has, needs in (("ways", found.ways, wanted.ways), ("groups", found.groups, wanted.groups)):
        if has is not None and needs is not None and has != needs:
            yield f"its resctrl has {has} {what}, and not {needs}"
    ours, theirs = found.memory_bytes, wanted.memory_bytes
    if ours is not None and theirs is not None and abs(ours - theirs) > SAME_MEMORY * theirs:
        yield f"it has {ours / 1e9:.1f} GB of memory, and not {theirs / 1e9:.1f} GB"


def _some(lists: tuple[str, ...]) -> str:
    """These lists in words."""
    return "; ".join(lists) or "none"


def _words(cache: LastLevel) -> str:
    size = "an unknown size" if cache.bytes is None else f"{cache.bytes / 2**20:g} MiB"
    return f"{size} in {cache.ways or 'an unknown number of'} ways around CPUs {cache.cpus}"
