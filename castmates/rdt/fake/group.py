"""One group of a mount: a control group, or a monitoring group within one."""

from dataclasses import dataclass, field

SHAREABLE = "shareable"


@dataclass(eq=False)
class Group:
    """A control group, or a monitoring group within one."""

    name: str  # "" is the default group
    closid: int
    rmid: int
    control: "Group | None" = None  # of a monitoring group: the control group that it is part of
    mode: str = SHAREABLE
    cpus: set[int] = field(default_factory=set)
    monitoring: list["Group"] = field(default_factory=list)  # its monitoring groups
    removed: bool = False

    @property
    def path(self) -> str:
        """Where it lies in the tree."""
        if self.control is None:
            return self.name
        return f"{self.control.name}/mon_groups/{self.name}".lstrip("/")
