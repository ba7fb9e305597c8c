"""Counters for the traffic of groups, where the kernel assigns them (`mbm_assign_mode` is mbm_event)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath

from castmates.linux.owned_names import maker_of_resctrl_group
from castmates.linux.owner import myself
from castmates.machine.mbm_counters import ASSIGNED, COUNTED, FREE, Assignment, assignment, assignments
from castmates.rdt.resctrl.refusals import reason
from castmates.rdt.resctrl.tree import Tree

INFO = "info/L3_MON"
FILES = ("mbm_assign_mode", "num_mbm_cntrs", "available_mbm_cntrs")


@dataclass
class TrafficCounters:
    """Sees to it that each watched group has its counters, and keeps why it has none.

    They are assigned in groups that we made, and go with them; what is missing in a group of others is reported.
    """

    tree: Tree
    missing: dict[str, str] = field(default_factory=dict)  # member -> why some traffic of it is not counted

    def claim(self, member: str, path: str, wanted: Sequence[tuple[str, int]]) -> None:
        """Have these events counted in these caches, as far as counters are left."""
        if not self._here().assigned:
            return
        place = f"{path}/mbm_L3_assignments".lstrip("/")
        try:
            states = assignments(self.tree.read(place))
        except OSError as error:
            self.missing[member] = f"{place} cannot be read ({error.strerror})"
            return
        for event, domain in wanted:
            if states.get(event, {}).get(domain) == FREE:
                self._assign(member, place, event, domain, maker_of_resctrl_group(PurePath(path).name) == myself())

    def about(self) -> dict[str, str]:
        """Describe whether counters belong to groups, and who has none."""
        here = self._here()
        if ASSIGNED not in here.offered:  # there is no choice: Linux 7 shows the one mode on every processor
            return {}
        numbers = "; ".join(f"l3:{domain} {count}" for domain, count in here.counters.items())
        kinds = f"assigned to groups ({numbers})" if here.assigned else f"given by the hardware (mode {here.mode})"
        text = {"traffic counters": kinds}
        if self.missing:
            text["traffic not counted"] = "; ".join(f"{name}: {why}" for name, why in self.missing.items())
        return text

    def _assign(self, member: str, place: str, event: str, domain: int, ours: bool) -> None:
        if not ours:
            self.missing.setdefault(member, f"no counter is assigned to {event} in l3:{domain} of a group of others")
            return
        with self.tree.locked():
            try:
                self.tree.write(place, f"{event}:{domain}={COUNTED}\n")
            except OSError as error:
                free, most = self._here().free.get(domain, 0), self._here().counters.get(domain, 0)
                self.missing.setdefault(
                    member,
                    f"no counter for {event} in l3:{domain} ({reason(self.tree, error)}); {free} of {most} are free:"
                    " remove monitoring groups that nobody needs",
                )

    def _here(self) -> Assignment:
        files: dict[str, str | None] = {}
        for name in FILES:
            with suppress(OSError):  # only where the hardware has such counters, and not on every kernel
                files[name] = self.tree.read(f"{INFO}/{name}").strip()
        return assignment(files)
