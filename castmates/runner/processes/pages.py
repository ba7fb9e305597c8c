"""Which pages a member's memory lies on, as the kernel counts them, and which ones it was to be on.

What a program gets by default depends on the distribution (transparent_hugepage: always, madvise or never), and a
program on huge pages is another one for the cache and for address translation.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from castmates.linux.page_counts import page_counts
from castmates.workloads.native.build import KEEPERS, KERNELS

ON_HUGE_PAGES = frozenset({"chase", "capacity"})  # kernels that ask for them unless they are asked for usual ones
HUGE, USUAL, AS_THE_SYSTEM_GIVES = "huge", "usual", "as the system gives"


def pages_of(pids: Iterable[int], command: Sequence[str], root: Path = Path("/")) -> dict[str, int | str] | None:
    """Return the bytes of these processes, those on huge pages, and what was wanted; None where that is not known."""
    known = [counts for pid in pids if (counts := page_counts(pid, root))]
    if not known:
        return None
    resident, huge = map(sum, zip(*known, strict=True))
    return {"resident": resident, "huge": huge, "wanted": wanted(command)}


def wanted(command: Sequence[str]) -> str:
    """Return what a command asks the kernel for; only our own kernels are known."""
    name = Path(command[0]).name if command else ""
    if name not in KERNELS or name in KEEPERS:
        return AS_THE_SYSTEM_GIVES
    asked = [word for word in command if word in ("--huge", "--small")]
    huge = asked[-1] == "--huge" if asked else name in ON_HUGE_PAGES
    return HUGE if huge else USUAL
