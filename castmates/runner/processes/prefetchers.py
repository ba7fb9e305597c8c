"""Switches the hardware prefetchers of a launch's cores off in the scenes whose shares say so.

Registers belong to cores, so everybody's are switched together: a sibling's would be switched with them anyway.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.machine.journal import KINDS, Change, Journal
from castmates.machine.prefetch_control import NAME, TAKE_OUT, switches_off
from castmates.protocols import Say
from castmates.study.spec import Cohort, Share

KNOB = "prefetchers of a scene"  # in the journal, beside the knob that a study sets for whole launches


class Prefetchers:
    """The registers of these cores, as found and with every prefetcher off."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._changes = changes
        self.off = False  # what was asked for

    def apply(self, shares: Iterable[Share]) -> None:
        """Switch them off where a share says so, and else back to what was found."""
        off = any(share.prefetchers == "off" for share in shares)
        if off == self.off:
            return
        for change in self._changes:
            try:
                KINDS[change.kind].write(Path(change.target), change.new if off else change.former)
            except OSError as error:
                raise _refusal(change.target, error) from None
        self.off = off

    def asked(self) -> dict[str, str]:
        """What every register was asked to hold."""
        return {change.target: change.new if self.off else change.former for change in self._changes}

    def read_back(self) -> dict[str, str]:
        """What every register holds; "" where it cannot be read."""
        return {change.target: _read(change) for change in self._changes}


def wanted(cohort: Cohort) -> bool:
    """Whether some scene has its prefetchers off."""
    return any(share.prefetchers for scene in cohort.scenes for share in scene.shares)


@contextmanager
def switched(cohort: Cohort, purpose: str, journal: Journal, say: Say, root: Path = Path("/")) -> Iterator[Prefetchers]:
    """Prepare to switch them, before anything is launched; at the end they are as they were found.

    They are switched off and on once: where registers cannot be written nothing is launched.
    """
    if not wanted(cohort):
        yield Prefetchers(())
        return
    changes = [
        Change(KNOB, change.kind, change.target, change.former, change.new)
        for change in switches_off(root, {cpu for member in cohort.members for cpu in member.cpus})
    ]
    try:
        for target, error in journal.apply(changes, purpose).items():
            raise _refusal(target, error)
        prefetchers = Prefetchers(changes)
        prefetchers.off = True
        prefetchers.apply(())
        yield prefetchers
    finally:
        for undone in journal.restore(lambda entry: entry.owner == journal.owner and entry.change.knob == KNOB):
            if undone.how in ("foreign", "gone", "failed"):
                say(str(undone))


def _read(change: Change) -> str:
    try:
        return KINDS[change.kind].read(Path(change.target))
    except OSError:
        return ""


def _refusal(target: str, error: OSError) -> CastmatesError:
    return CastmatesError(
        f"{NAME} cannot be switched: {target}: {error.strerror}; run the study as root, with the kernel not locked "
        f"down and without msr.allow_writes=off, {TAKE_OUT}."
    )
