"""A mounted resctrl as one run uses it: what its allocator and its monitor share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from castmates.machine.lock import print_progress
from castmates.protocols import Say
from castmates.rdt.resctrl.journal_entries import ResctrlJournal
from castmates.rdt.resctrl.registers import ReadRegister
from castmates.rdt.resctrl.tasks import Tasks
from castmates.rdt.resctrl.tree import Tree


@dataclass(frozen=True)
class Mounted:
    """The files and threads of a resctrl, where changes are noted, and how to let go of it."""

    tree: Tree
    tasks: Tasks
    journal: ResctrlJournal
    domain_of: Mapping[int, int]  # CPU -> its last-level cache
    options: Sequence[str] = ()  # of the mount
    say: Say = print_progress
    release: Callable[[], list[str]] = list  # lists in sentences what could not be put back
    read_register: ReadRegister | None = None  # of the processor; None where there is none to ask
