"""The command `castmates trace flame`: where a member's CPU time goes, and where more of it goes beside others."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.command import Studied, TracedMix, command
from castmates.cli.screen import console, show
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from rich.text import Text

    from castmates.timeline.flames.tree import Flame, Frame
    from castmates.timeline.model import Timeline

SHOWN = 12  # functions in the terminal


class Per(StrEnum):
    """By what CPU time is divided."""

    step = "step"
    second = "second"


@command(
    "trace flame",
    "castmates trace flame study.yaml lead+stream",
    "castmates trace flame study.yaml lead+stream --scene alone --operations",
    order=4,
)
def flame(
    study: Studied,
    mix: TracedMix,
    member: Annotated[
        str, typer.Option(help="The member whose stacks are drawn; the lead if left out.", show_default=False)
    ] = "",
    thread: Annotated[
        str, typer.Option(help="One of its threads, by its number or its name; all if left out.", show_default=False)
    ] = "",
    scene: Annotated[
        str, typer.Option(help="One scene by itself: alone, corun, or a scene's whole name.", show_default=False)
    ] = "",
    difference: Annotated[
        bool,
        typer.Option("--difference", help="Beside others against alone; so it is for the lead if --scene is left out."),
    ] = False,
    per: Annotated[Per, typer.Option(help="Divide CPU time by the member's steps, or by seconds.")] = Per.step,
    operations: Annotated[
        bool,
        typer.Option(
            "--operations", help="Only traced steps; each stack begins with the operation that its thread was in."
        ),
    ] = False,
    latencies: Annotated[
        bool,
        typer.Option(
            "--latencies",
            help="Instead, show where sampled loads were served from, and how slow they were (PEBS, IBS, SPE), in a "
            "trace with `--events latencies`.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write: .svg, .folded (FlameGraph), .speedscope.json; an SVG beside the trace by default.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw the sampled stacks of a trace as a flame graph.

    Of one scene, or beside others against alone.
    """
    from castmates.results.find import find_traces
    from castmates.results.traces import trace_folder
    from castmates.timeline.flames import files
    from castmates.timeline.tables import read

    if scene and difference:
        raise CastmatesError("--scene shows one scene and --difference compares two; give one of them.")
    folder, study_file = find_traces(study)
    place = trace_folder(folder, mix)
    timeline = read(place, "tracks", "intervals", "instants", "samples", "stacks")
    asked = files.Asked(member, thread, scene, difference, per.value, operations).filled(timeline)
    if latencies:
        _show_latencies(timeline, asked.member)
        return
    drawn = files.drawn(timeline, asked)
    file = output or place / files.name_of(asked)
    files.write(drawn, file, files.title_of(drawn), files.source_of(timeline, folder.path.name, place.name))
    _report(drawn, _tracing(study_file, place.name, str(timeline.about.get("partition") or "")))
    typer.echo(f"{file}")


def _tracing(study: Path | None, mix: str, partition: str) -> str:
    """The command that made the trace."""
    from castmates.study.spec import UNMANAGED

    under = f" --partition {partition}" if partition not in ("", UNMANAGED) else ""
    return f"castmates trace record {study or 'STUDY'} {mix.removesuffix(f'@{partition}')}{under}"


def _show_latencies(timeline: "Timeline", member: str) -> None:
    """Sampled loads by level, alone and beside others."""
    from rich import box
    from rich.table import Table

    from castmates.timeline.latencies import latencies

    found = latencies(timeline, member)
    if found.empty:
        raise CastmatesError(
            f"the trace has no sampled loads of {member}: a trace has them with `latencies` among its events, on a "
            "processor that samples them (`castmates doctor`)."
        )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("scene", "served by", "loads", "share", "median", "90 %", "99 % of loads, cycles", "other node"):
        table.add_column(name, justify="left" if name in ("scene", "served by") else "right")
    for row in found.to_dict("records"):
        cells = [f"{row[each]:.0f}" for each in ("cycles_median", "cycles_90", "cycles_99")]
        table.add_row(
            row["scene"], row["level"], str(row["loads"]), f"{row['share']:.1%}", *cells, f"{row['remote_share']:.1%}"
        )
    console().print(f"Loads of {member} (read from perf's records; not tried on real hardware)", highlight=False)
    show(table)


def _report(drawn: "Flame", command: str) -> None:
    """The functions that differ, or take, most."""
    from rich import box
    from rich.table import Table

    from castmates.timeline.flames import tree
    from castmates.timeline.flames.tree import functions

    where, compared = console(), drawn.before is not None
    before, after = drawn.values(drawn.root)
    amounts = f"{tree.number(before)} alone, {tree.number(after)} beside others" if compared else tree.number(after)
    verdict = f": {tree.change(before, after)}, {tree.verdict(drawn.root)}" if compared else ""
    where.print(
        f"{drawn.after.member}: {amounts}, in {tree.unit(drawn)}{verdict}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("in itself", *(("alone", "beside", "difference", "") if compared else (tree.unit(drawn), ""))):
        table.add_column(name, overflow="fold", justify="left" if name in ("in itself", "") else "right")
    for one in functions(drawn)[:SHOWN]:
        table.add_row(*_row(drawn, one, compared))
    show(table)
    if warning := tree.warning(drawn.before, drawn.after):
        where.print(f"Warning: {warning}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    for line in filter(None, (tree.how_to_read(drawn), tree.too_few(drawn, command))):
        where.print(line, markup=False, highlight=False, soft_wrap=True)


def _row(drawn: "Flame", one: "Frame", compared: bool) -> "tuple[Text, ...]":
    from rich.text import Text

    from castmates.timeline.flames import tree

    before, after = drawn.values(one)
    cells = [tree.short(one.name)]
    if compared:
        cells += [tree.number(before), tree.number(after), tree.change(before, after), tree.verdict(one)]
    else:
        cells += [tree.number(after), tree.samples(one.after.samples)]
    return tuple(Text(cell) for cell in cells)
