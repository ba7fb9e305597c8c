"""What a mark of a figure shows when it is pointed at: words that the page shows, and that no printed file has.

They travel as the mark's `gid`, the only thing that matplotlib writes beside a mark into an SVG.
"""

from collections.abc import Sequence
from typing import TypeVar

from matplotlib.artist import Artist

from castmates.report.figures.style import PREFIX

BETWEEN = " \N{BROKEN BAR} "
Mark = TypeVar("Mark", bound=Artist)


def with_value(mark: Mark, *words: str) -> Mark:
    """The mark with what it is; of a collection of points with that of each point."""
    mark.set_gid(PREFIX + BETWEEN.join(words))
    return mark


def values_of(identifier: str) -> Sequence[str]:
    """The words behind an identifier; none where it is another one."""
    return identifier.removeprefix(PREFIX).split(BETWEEN) if identifier.startswith(PREFIX) else ()
