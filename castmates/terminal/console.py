"""A console on which nothing that somebody else wrote, a title or a program's last words, steers the terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from castmates.english import printable


class SafeConsole(Console):
    """Colours and the cursor are set by this program alone: letters that would do it are replaced in every text."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 (those of rich)
        super().__init__(highlight=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of what is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
