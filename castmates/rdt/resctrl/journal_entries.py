"""Writes down in the machine's journal what of resctrl is about to be changed, and strikes out what was put back."""

from pathlib import Path

from castmates.linux.group_folder import ABSENT, THERE
from castmates.machine.journal import Change, Entry, Journal
from castmates.machine.resctrl_state import ALSO

GROUP, SCHEMATA = "group", "resctrl-schemata"


class ResctrlJournal:
    """The entries of one user of a mount; of a fake, which ends with its process, nothing is written."""

    def __init__(self, journal: Journal | None, point: Path, purpose: str) -> None:
        self._journal = journal
        self.point = point
        self._purpose = purpose
        self._open: dict[str, Entry] = {}

    def announce_group(self, path: str) -> None:
        """Write down that a group will be made."""
        self._announce(path, Change("resctrl group", GROUP, str(self.point / path), ABSENT, THERE))

    def announce_schemata(self, path: str, former: str, new: str) -> None:
        """Write down that a group which we did not make gets these schemata too, in one line."""
        entry = self._open.get(path)
        if entry is None:
            target = self.point / path / "schemata"
            self._announce(path, Change("resctrl schemata", SCHEMATA, str(target), former, new))
        elif self._journal and new not in [former, *entry.change.new.split(ALSO)]:
            self._open[path] = self._journal.amend(entry, entry.change.new + ALSO + new)

    def strike(self, path: str) -> None:
        """Strike out what was put back."""
        entry = self._open.pop(path, None)
        if entry and self._journal:
            self._journal.close([entry])

    def _announce(self, path: str, change: Change) -> None:
        if self._journal:
            self._open[path] = self._journal.announce([change], self._purpose)[0]
