"""Sees to it that control groups change nobody's share of a CPU: of members against each other, or against the runner.

The groups are the launch's, and go with their weights.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cpu_weight


def even_out(cpus: Mapping[str, int], group_of: Callable[[str], Path | None]) -> None:
    """Weigh the groups of members with so many CPUs, and the one that all of them are in against what is beside it.

    Where the controller is, an administrator may have handed it down, or a quota needs it.
    """
    own = {group: count for name, count in cpus.items() if (group := group_of(name)) is not None}
    try:
        cpu_weight.weigh(own)
        for above in {group.parent for group in own}:
            cpu_weight.weigh({above: sum(count for group, count in own.items() if group.parent == above)})
    except OSError as error:
        raise CastmatesError(
            f"the control groups of members cannot be weighed against each other ({error.strerror}), so that a group "
            "with more CPUs would get less of each; start the sweep where the controller 'cpu' does not reach."
        ) from None
