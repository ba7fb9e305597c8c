"""One row of the doctor's table."""

from dataclasses import dataclass
from typing import Literal

GRANT = "sudo castmates doctor --grant"  # what most lacks of permissions take
State = Literal["yes", "no", "partly", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """Whether the machine offers one thing, what its lack costs a study, and how to change it.

    A remedy that begins with "See" names the row whose lack is the cause.
    """

    name: str
    state: State
    finding: str
    cost: str = ""
    remedy: str = ""
    change: str = ""  # what its user can do here, in a line: mostly a command; "" where only another machine helps
