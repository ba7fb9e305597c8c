"""Makes, fills and removes groups of resctrl; waits for monitoring ids that are still in limbo."""

import errno
import time
from collections.abc import Collection
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.cgroups import ABSENT, THERE
from castmates.linux.kernel_files import NOT_PERMITTED
from castmates.linux.owner import delegated_number, delegated_to, is_gone, maker_of_resctrl_group
from castmates.machine.journal import Change, Entry, Journal
from castmates.machine.resctrl_state import ALSO
from castmates.protocols import Held, Say
from castmates.rdt.resctrl.capabilities import io_has_a_class
from castmates.rdt.resctrl.foreign import Tasks, control_groups, foreign_groups, listed, monitoring_groups, pqos_user
from castmates.rdt.resctrl.tree import Tree, refusal

# What of resctrl is about to be changed, in the machine's journal; what was put back is struck out.

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


LIMBO_S = 30.0  # the kernel looks for clean monitoring ids once a second
LIMBO_LOOK_S = 1.0
PASSES = 100  # over a member's threads, until none is outside its group
NOT_HERE = (errno.ENOENT, errno.ENODEV)


def make(tree: Tree, journal: ResctrlJournal, path: str, say: Say, limbo_s: float = LIMBO_S) -> None:
    """Make a group, written down before; where its id is in limbo wait, for a bounded time."""
    journal.announce_group(path)
    try:
        deadline, is_shown = time.monotonic() + limbo_s, False
        while error := _try_to_make(tree, path):
            if time.monotonic() >= deadline:
                raise error
            if not is_shown:
                say(f"waiting up to {limbo_s:.0f} s for a monitoring id of resctrl that is still in limbo")
                is_shown = True
            time.sleep(LIMBO_LOOK_S)
    except (CastmatesError, OSError):
        journal.strike(path)
        raise


def _try_to_make(tree: Tree, path: str) -> CastmatesError | None:
    """Return the refusal of a group that may be granted later; a user who may make none gets the kernel's error."""
    with tree.locked():
        try:
            tree.make(path)
        except OSError as error:
            if error.errno in NOT_PERMITTED:
                raise
            refused = refusal(tree, error, f"make the group {path}", _why_not(tree, error))
            if error.errno != errno.EBUSY:
                raise refused from None
            return refused
    return None


def _why_not(tree: Tree, error: OSError) -> str:
    others = ", ".join(map(str, foreign_groups(tree)))
    if error.errno == errno.EBUSY:
        return (
            "all monitoring ids that are free are in limbo, since lines that they once brought are still in the cache;"
            " wait, let something sweep through the cache, or raise info/L3_MON/max_threshold_occupancy"
        )
    if error.errno == errno.ENOSPC and (others or pqos_user()):
        user = f"; {pqos_user()} uses pqos now" if pqos_user() else ""
        return f"others hold classes or monitoring ids: {others}{user}; have their owners end, and rmdir the empty ones"
    if error.errno == errno.ENOSPC:
        io = "; io_alloc holds one class: echo 0 > info/L3/io_alloc gives it back" if io_has_a_class(tree) else ""
        return (
            "the processor has no class or monitoring id for one more group: take fewer members, or mount without cdp"
            + io
        )
    return ""


def remove(tree: Tree, journal: ResctrlJournal, path: str) -> None:
    """Remove a group if it is there; who lives in it falls back to the group above."""
    try:
        tree.remove(path)
    except OSError as error:
        if error.errno not in NOT_HERE:
            raise refusal(tree, error, f"remove the group {path}") from None
    journal.strike(path)


def delegated(tree: Tree, uid: int) -> list[str]:
    """List the control groups that root gave to a user and that are empty."""
    own = [name for name in control_groups(tree) if delegated_to(name) == uid]
    return [name for name in sorted(own, key=delegated_number) if not _lived_in(tree, name)]


def delegated_monitoring(tree: Tree, control: str, uid: int) -> list[str]:
    """List the monitoring groups in a control group that root gave to a user and that are empty."""
    paths = [path for path in monitoring_groups(tree, control) if delegated_to(Path(path).name) == uid]
    return [path for path in paths if not _lived_in(tree, path)]


def _lived_in(tree: Tree, path: str) -> bool:
    try:
        return bool(listed(tree, path))
    except OSError:
        return True


def fill(tree: Tree, tasks: Tasks, path: str, held: Held, who: str) -> int:
    """Move a process and all that came from it, thread by thread, until none is outside; return how many moved.

    Children and threads inherit the group of who makes them, so that each pass finds fewer.
    """
    moved = 0
    for _ in range(PASSES):
        inside = listed_or_gone(tree, path, who)
        outside = [tid for tid in tasks.threads([held])[held.pid] if tid not in inside]
        if not outside:
            return moved
        moved += sum(_move(tree, path, tid, who) for tid in outside)
    raise CastmatesError(
        f"{who} makes threads faster than they can be moved into the group {path}: after {PASSES} passes"
        f" {len(outside)} are still outside; start it more slowly, or leave it out."
    )


def listed_or_gone(tree: Tree, path: str, who: str) -> Collection[int]:
    """List the threads in a group; a group that is gone is an error."""
    try:
        return listed(tree, path)
    except OSError as error:
        raise refusal(tree, error, f"list the threads in the group {path} of {who}") from None


def _move(tree: Tree, path: str, tid: int, who: str) -> bool:
    """Move one thread: older kernels take only one number in each write."""
    with tree.locked():
        try:
            tree.write(f"{path}/tasks", f"{tid}\n")
        except OSError as error:
            if error.errno == errno.ESRCH:
                return False
            raise refusal(tree, error, f"move thread {tid} of {who} into the group {path}") from None
    return True


def places(tree: Tree, tasks: Tasks, tids: Collection[int], path: str) -> dict[int, str]:
    """Return the control group of each living thread that the list of `path` lacks, as far as the kernel shows it."""
    try:
        inside = listed(tree, path)
    except OSError:
        inside = set()
    outside = [tid for tid in tids if tid not in inside]
    if not tasks.shows_places:
        return dict.fromkeys(outside, "another group")
    places_of = {tid: tasks.place(tid) for tid in outside}
    return {tid: place.control for tid, place in places_of.items() if place is not None}


def stale(tree: Tree) -> list[str]:
    """List the groups whose maker has ended; monitoring groups first, because a control group takes its own with it."""
    control = control_groups(tree)
    monitoring = [path for parent in ["", *control] for path in monitoring_groups(tree, parent)]
    makers = {path: maker_of_resctrl_group(Path(path).name) for path in monitoring + control}
    return [path for path, maker in makers.items() if maker and is_gone(maker)]
