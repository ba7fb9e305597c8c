"""A terminal whose last lines change while a sweep runs."""

from collections import Counter

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from castmates.terminal.console import SafeConsole
from castmates.terminal.sweep import LaunchProgress, Sweep
from castmates.terminal.words import DONE, MIND, WRONG, about, clock, names_of, place_of, round_of, windows_words

MARKS = {DONE: "bold green", MIND: "bold yellow", WRONG: "bold red"}
BAR, SHORTEST_BAR = 40, 8  # letters
BESIDE = 50  # that stand beside the bar
SHOWN = 3  # launches side by side
LONG = 90.0  # seconds; below, a time that is left is not shown to the second


class Terminal:
    """Nothing is drawn unless it is asked for: drawing takes time that a measurement may need."""

    changes = True

    def __init__(self) -> None:
        self._console = SafeConsole(stderr=True)
        self._live: Live | None = None

    def line(self, text: str, style: str = "") -> None:
        """Print a line above those that change; its mark is coloured."""
        styled = Text(text, style=style)
        for mark, colour in MARKS.items():
            if text.startswith(f" {mark} "):
                styled.stylize(colour, 1, 2)
        self._console.print(styled, soft_wrap=True)

    def update(self, sweep: Sweep, launches_of: Counter[str], job: str, now: float) -> None:
        """Draw them."""
        if self._live is None:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
            self._console.show_cursor(True)  # nothing would bring it back after a kill
        self._live.update(Group(*region(sweep, launches_of, job, now, self._console.width)), refresh=True)

    def close(self) -> None:
        """Take them away."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()


def region(sweep: Sweep, launches_of: Counter[str], job: str, now: float, width: int) -> list[Table | Text]:
    """What is done now, and for how long; `job` is what is done besides launches."""
    if sweep.first_begun is None:
        return [_cut(f" Preparing   {job}")] if job else []
    if not sweep.at_work and not sweep.waiting:
        return [_cut(f" Reporting   {job}".rstrip())]
    lines: list[Table | Text] = [_bar(sweep, now, width)]
    at_work = list(sweep.at_work.values())
    lines += [_cut(f"   {launch_words(progress, launches_of)}") for progress in at_work[:SHOWN]]
    if len(at_work) > SHOWN:
        lines.append(_cut(f"   and {len(at_work) - SHOWN} more side by side"))
    if not at_work and job:
        lines.append(_cut(f"   {job}"))
    seen = sweep.windows
    if seen.kept or seen.rejected:
        lines.append(_cut(f"   {windows_words(seen.kept, seen.rejected, seen.because, seen.who)}"))
    return lines


def launch_words(progress: LaunchProgress, launches_of: Counter[str]) -> str:
    """What is measured now."""
    place = place_of(progress.launch, launches_of[progress.launch.cohort.id])
    return f"{names_of(progress.launch)}   {place}   {round_of(progress.note)}"


def _bar(sweep: Sweep, now: float, width: int) -> Table:
    row = Table.grid(padding=(0, 1))
    begun = sweep.first_begun if sweep.first_begun is not None else now
    times = f"{sweep.done} of {sweep.total}   {clock(now - begun)}, about {left(sweep.seconds_left(now))} left"
    bar = ProgressBar(
        total=1.0, completed=sweep.share(now), width=max(SHORTEST_BAR, min(BAR, width - BESIDE)), complete_style="green"
    )
    row.add_row(Text(" Measuring"), bar, Text(f" {times}", no_wrap=True))
    return row


def left(seconds: float) -> str:
    """A time that is left: 3:20, or 40 s."""
    return about(seconds) if seconds < LONG else clock(10 * round(seconds / 10))


def _cut(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")
