"""How wide text for a terminal is, and how it writes a duration."""

import shutil


def width() -> int:
    """Letters in a line: as many as the terminal has, within limits."""
    return max(80, min(shutil.get_terminal_size().columns, 140))


def minutes(seconds: float) -> str:
    """A duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
