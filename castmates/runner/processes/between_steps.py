"""Has members stand between two steps before they are frozen, so that nothing is queued on a device meanwhile."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from castmates.errors import CastmatesError
from castmates.workloads.standing import VARIABLE, Standing

LONGEST_WAIT = 60.0  # seconds that a step may take
_PAUSE_S = 0.0001


@dataclass
class BetweenSteps:
    """The runner's end, for one member, and what it has to report."""

    standing: Standing
    path: Path
    times: int = 0
    longest_s: float = 0.0

    @classmethod
    def create(cls, path: Path) -> "BetweenSteps":
        """Make the file of a member that is launched now."""
        return cls(Standing.create(path), path)

    @property
    def variables(self) -> dict[str, str]:
        """What the member finds in its environment."""
        return {VARIABLE: str(self.path)}

    def about(self) -> dict[str, object]:
        """How often it was frozen between two steps, and how long the longest wait for that was."""
        return {"times": self.times, "longest_wait_s": round(self.longest_s, 4)}


class Process(Protocol):
    """What is needed of a running member here."""

    between_steps: BetweenSteps | None

    @property
    def name(self) -> str:
        """The member's name."""

    @property
    def gone(self) -> bool:
        """Whether it makes no more steps."""


def let_stand(processes: Iterable[Process], longest_s: float = LONGEST_WAIT) -> None:
    """Ask all of these that can, and return when each of them stands or makes no more steps."""
    asked = [(process, process.between_steps) for process in processes if process.between_steps is not None]
    begin = time.monotonic()
    for _, one in asked:
        one.standing.ask()
    while asked:
        standing = [one for _, one in asked if one.standing.stands()]  # looked at once: it may change at any time
        waited = time.monotonic() - begin
        for one in standing:
            one.times += 1
            one.longest_s = max(one.longest_s, waited)
        asked = [(process, one) for process, one in asked if one not in standing and not process.gone]
        if asked and waited > longest_s:
            raise CastmatesError(
                f"member {asked[0][0].name} did not come to the end of a step within {longest_s:g} s, so what it "
                "queued on its device would go on while it is frozen: its steps must be shorter"
            )
        if asked:
            time.sleep(_PAUSE_S)


def let_go(processes: Iterable[Process]) -> None:
    """Let all of these make steps again, as soon as they are thawed."""
    for process in processes:
        if process.between_steps is not None:
            process.between_steps.standing.let_go()
