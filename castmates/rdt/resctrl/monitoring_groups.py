"""The group in which each member is watched: its own control group, or a monitoring group that is made for it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from castmates.errors import CastmatesError
from castmates.linux.owned_names import delegated_to, maker_of_resctrl_group, resctrl_group_name
from castmates.protocols import Held, Say
from castmates.rdt.resctrl import groups
from castmates.rdt.resctrl.foreign import control_groups
from castmates.rdt.resctrl.journal_entries import ResctrlJournal
from castmates.rdt.resctrl.refusals import refusal
from castmates.rdt.resctrl.schemata import parse
from castmates.rdt.resctrl.tasks import Tasks, listed
from castmates.rdt.resctrl.tree import Tree

FIRST = 1000  # numbers of monitoring groups begin here, so that their names differ from control groups'


@dataclass
class MonitoringGroups:
    """Finds, makes and removes the groups."""

    tree: Tree
    tasks: Tasks
    journal: ResctrlJournal
    say: Say
    paths: dict[str, str] = field(default_factory=dict)  # member -> its group
    missing: dict[str, str] = field(default_factory=dict)  # member -> why it has none
    _made: list[str] = field(default_factory=list)
    _patience: float = groups.LIMBO_S  # with ids in limbo, once for all members

    def attach(self, members: Mapping[str, Held]) -> None:
        """Give every member its own group; those without one are named in `missing`, and the others go on."""
        controls = {name: self._control_of(held.pid) for name, held in members.items()}
        for number, (name, held) in enumerate(members.items()):
            control = controls[name]
            if control and _is_for_us(control) and list(controls.values()).count(control) == 1:
                self.paths[name] = control
            else:
                self._watch(name, held.pid, control, FIRST + number)

    def close(self) -> None:
        """Remove what was made; safe to call twice."""
        while self._made:
            path = self._made.pop()
            try:
                groups.remove(self.tree, self.journal, path)
            except CastmatesError as error:
                self.say(str(error))

    def _watch(self, name: str, pid: int, control: str, number: int) -> None:
        try:
            path = self._make(control, number)
            groups.fill(self.tree, self.tasks, path, pid, name)
            self.paths[name] = path
        except CastmatesError as error:
            self.missing[name] = str(error)
            self._patience = 0.0

    def _make(self, control: str, number: int) -> str:
        path = f"{control}/mon_groups/{resctrl_group_name(number)}".lstrip("/")
        try:
            groups.make(self.tree, self.journal, path, self.say, self._patience)
        except OSError as error:
            paths = [group for group in self._delegated(control) if group not in self.paths.values()]
            if not paths:
                raise refusal(self.tree, error, f"make the monitoring group {path}") from None
            return paths[0]
        self._made.append(path)
        return path

    def _delegated(self, control: str) -> list[str]:
        """List the groups that root gave to this user and that may serve here.

        A control group may stand for the default one, as long as it has the same: so a user who may make no group is
        watched without being bounded.
        """
        uid = os.geteuid()
        monitoring = groups.delegated_monitoring(self.tree, control, uid)
        if control:
            return monitoring
        ours = parse(self.tree.read("schemata"))
        return monitoring + [
            name for name in groups.delegated(self.tree, uid) if parse(self.tree.read(f"{name}/schemata")) == ours
        ]

    def _control_of(self, pid: int) -> str:
        """Find the control group of a process; "" is the default one."""
        if self.tasks.shows_places:
            place = self.tasks.place(pid)
            return place.control if place else ""
        for control in control_groups(self.tree):
            try:
                if pid in listed(self.tree, control):
                    return control
            except OSError:  # it has just been removed
                continue
        return ""


def _is_for_us(control: str) -> bool:
    return maker_of_resctrl_group(control) is not None or delegated_to(control) == os.geteuid()
