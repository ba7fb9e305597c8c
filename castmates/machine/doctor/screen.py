"""The doctor's summary on a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from castmates.machine.doctor.capabilities import Summary

MARKS = {"yes": ("✓", "green"), "partly": ("!", "yellow"), "unknown": ("?", "dim"), "no": ("✗", "red")}
STATES = ("yes", "partly", "no", "unknown")
COMMANDS = ("sudo", "castmates", "echo")


def screen(summary: Summary) -> Group:
    """What can be done here, what the user can change, what takes another machine."""
    parts: list[RenderableType] = [Text("  ·  ".join(summary.machine), style="bold"), Text(), _verdicts(summary)]
    for title, lines in (("You can change", summary.changes), ("Only another machine can", summary.elsewhere)):
        if lines:
            parts += [Text(), Text(title, style="bold"), _lines(lines)]
    counts = ", ".join(f"{summary.counts[state]} {state}" for state in STATES if summary.counts.get(state))
    more = Text.assemble(counts, "   each row: ", ("castmates doctor --all   --format json", "cyan"))
    return Group(*parts, Text(), more)


def _verdicts(summary: Summary) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for style in ("", "bold", ""):
        table.add_column(style=style, no_wrap=style == "bold", overflow="fold")
    for verdict in summary.verdicts:
        mark, colour = MARKS[verdict.state]
        table.add_row(Text(f" {mark}", style=colour), Text(verdict.name), Text(verdict.why))
    return table


def _lines(lines: Sequence[tuple[str, str]]) -> Padding:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=28)
    table.add_column(overflow="fold")
    for gained, how in lines:
        table.add_row(Text(gained), Text(how, style="cyan" if how.startswith(COMMANDS) else ""))
    return Padding(table, (0, 0, 0, 4))
