"""What `castmates sweep --replay` does: a published study is measured again here, and compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from castmates.cli.screen import console, rows_of, show_json

if TYPE_CHECKING:
    from castmates.pipeline.replay import Replay
    from castmates.report.comparison.replay import Replayed
    from castmates.results.published import Published

SHOWN = 40  # rows in a terminal
DIFFERENCES = 16


@dataclass(frozen=True)
class Replaying:
    """How a published study is measured again, and how that is shown."""

    lead: str = ""
    launches: int | None = None
    name: str = ""
    margin: float | None = None
    only_write: bool = False
    as_json: bool = False


def replay_published(published: Path, wish: Replaying, cores: str, options: Sequence[str]) -> None:
    """Measure a published study, or one launch of it, again on this machine; show which effects agree.

    The same command goes on after an interruption. It ends with 0 if every effect agrees, 3 if one differs, and 4 if
    none differs and some are undecided.
    """
    from castmates.english import printable
    from castmates.pipeline import snakemake
    from castmates.pipeline.replay import Asked, prepare
    from castmates.rdt.choose import facts_here
    from castmates.results.published import find_published

    source = find_published(published)
    prepared = prepare(source, Asked(wish.lead, wish.launches, wish.name), facts_here)
    typer.echo(f"study: {prepared.file}", err=True)
    for line in _known_beforehand(prepared):
        typer.echo(printable(line), err=True)  # a stranger wrote the commands in it
    if wish.only_write:
        return
    say = partial(typer.echo, err=True)
    snakemake.sweep(prepared.file, cores, say, options=options, shows_result=False)
    found = _replayed(source, prepared, wish.margin)
    files = _write_replay(found, prepared)
    if wish.as_json:
        show_json(_replay_data(found))
    else:
        _print_replay(found)
    for file in files:
        typer.echo(file, err=wish.as_json)
    raise typer.Exit(found.status)


def _known_beforehand(prepared: "Replay") -> Iterator[str]:
    """What is known to differ before hours are spent on it."""
    from castmates.report.comparison.details import other_work

    yield from prepared.notes
    for what, there, here in other_work([prepared.published.plan, prepared.plan]):
        yield f"{what}: {here} here, {there} in the published study."


def _replayed(source: "Published", prepared: "Replay", margin: float | None) -> "Replayed":
    from castmates.pipeline.replay import without_controls
    from castmates.report.comparison.replay import control_notes, replay_of
    from castmates.results.columns.study import STAMPS
    from castmates.results.find import read_measured
    from castmates.results.folder import StudyFolder
    from castmates.results.published import published_effects
    from castmates.results.tables import Tables

    folder = StudyFolder.of(prepared.plan.study)
    stamps = Tables(folder, prepared.file).read(STAMPS)
    notes = [*prepared.notes, *control_notes(stamps)]
    here = without_controls(read_measured(folder.path))
    return replay_of(prepared.published, here, margin, source.named, notes, published_effects(source))


def _write_replay(found: "Replayed", prepared: "Replay") -> list[Path]:
    from castmates.report.comparison.replay import write

    return write(found, prepared.file.parent)


def _print_replay(found: "Replayed") -> None:
    from rich.table import Table

    from castmates.report.comparison.replay import headline, rows, sentences, stamp

    where = console()
    for words in filter(None, (found.pair.origin, stamp(found))):
        where.print(words.upper(), style="bold red", markup=False)
    first = headline(found)
    for sentence in sentences(found):
        where.print(f"• {sentence}", style="bold" if sentence == first else None, markup=False)
    every = rows(found)
    partitioned = any(row["partition"] != "unmanaged" for row in every)
    table = Table(box=None)
    for head in ("mix", "member", *(["partition"] * partitioned), "against", "published (%)", "here (%)",
                 "here/published", "together (%)", "verdict", "launches"):  # fmt: skip
        table.add_column(head, overflow="fold")
    for row in every[:SHOWN]:
        place = [row["mix"], row["member"], *([row["where"]] if partitioned else []), row["baseline"]]
        numbers = [row["said_published"], row["said_here"], row["said_ratio"], row["said_joint"], row["verdict"]]
        table.add_row(*place, *numbers, f"{row['published_launches']}, {row['here_launches']}")
    if len(every) > SHOWN:
        table.caption = f"{len(every) - SHOWN} more rows are in replay.csv."
    where.print()
    where.print(table)
    where.print()
    if not found.differences:
        where.print("Nothing that was recorded of machines, versions, designs and programs differs.")
    for sentence in found.differences[:DIFFERENCES]:
        where.print(f"• {sentence}", markup=False)
    if len(found.differences) > DIFFERENCES:
        where.print(f"{len(found.differences) - DIFFERENCES} more differences are on the page.")
    where.print()


def _replay_data(found: "Replayed") -> dict[str, object]:
    from castmates.report.comparison.replay import sentences, stamp

    return {
        "origin": found.pair.origin,
        "stamp": stamp(found),
        "status": found.status,
        "margin": found.pair.margin,
        "sentences": sentences(found),
        "rows": rows_of(found.table),
        "differences": list(found.differences),
        "contradictions": list(found.contradictions),
    }
