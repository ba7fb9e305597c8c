"""How a class of nodes stands in names: `chase~xeon` is the lead `chase` on nodes of the class `xeon`.

The name of a mix begins with its lead, and so has the class too: `chase~xeon+stream:smt`. Names that differ are never
pooled.
"""

import re

OF = "~"  # a workload and the class of its node; no workload's name has one
_CLASS = re.compile(rf"{OF}[a-z0-9._-]+")
_LEAD = re.compile(r"[^+:@]+")


def named(name: str, machine: str) -> str:
    """A lead, a member or a mix by its name on nodes of a class; as it is without classes."""
    return _LEAD.sub(rf"\g<0>{OF}{machine}", name, count=1) if machine else name


def without_class(name: str) -> str:
    """The name as it is where there are no classes."""
    return _CLASS.sub("", name)


def workload_of(member: str) -> str:
    """The workload of a member, a lead's with the class of its node: `stream@1` -> `stream`."""
    return member.partition("@")[0]


def plain_workload_of(member: str) -> str:
    """The workload of a member as the study names it."""
    return without_class(workload_of(member))
