"""How far the sweep of a study is, and whether one is running."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castmates.pipeline.snakemake import Running, running_sweep
from castmates.project import Project
from castmates.results.looks import Look, read_adaptive_looks
from castmates.results.named import study_argument
from castmates.results.records import torn_words
from castmates.study.changed_design import changed_words
from castmates.study.curves import sentences, summary
from castmates.terminal.preview import duration
from castmates.terminal.preview.duration import (
    Amount,
    Amounts,
    between,
    minutes_between,
    seconds_between,
    still_to_measure,
)


@dataclass(frozen=True)
class Progress:
    """What is done of a study, and what is left."""

    study: str
    file: str
    launches: Amount
    missing: tuple[int, int]  # launches, least and most
    seconds: tuple[float, float]  # that they take, analysis included
    running: Running | None
    report: str  # "" where there is none
    stale: bool  # a launch was measured after the report was written
    looks: tuple[str, ...] = ()  # what the looks of an adaptive study decided: all of them together, then the last
    torn: tuple[str, ...] = ()  # on launches whose files cannot be used
    changed: tuple[str, ...] = ()  # on launches that were measured with another design


def progress(project: Project) -> Progress:
    """How far it is now."""
    folder, found = project.results, project.found()
    plan, torn = duration.expected(project, project.plan(found)), found.torn
    least, most = still_to_measure(project, plan, torn)
    page = folder.page_file
    written = page.stat().st_mtime if page.is_file() else None
    newest = max((file.stat().st_mtime for file in folder.record_files()), default=0.0)
    return Progress(
        study=project.study.name,
        file=str(project.study_file),
        launches=Amounts(folder, plan, torn).of(plan.launches),
        missing=(len(least), len(most)),
        seconds=seconds_between(project, least, most),
        running=running_sweep(folder),
        report="" if written is None else str(page),
        stale=written is not None and newest > written,
        looks=tuple(_looks(read_adaptive_looks(plan, folder))),
        torn=tuple(torn_words(torn)),
        changed=tuple(changed_words(project.study, plan.launches)),
    )


def _looks(taken: Sequence[Look]) -> Iterator[str]:
    if taken:
        yield summary(taken)
        yield from sentences(taken[-1])


def screen(found: Progress) -> Group:
    """The answer first, then the numbers, then what to do next."""
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in _facts(found):
        table.add_row(f" {name}", fact)
    head = Text.assemble((found.study, "bold"), "   ", (_headline(found), "bold green"), "   ", (found.file, "dim"))
    return Group(head, Text(), table, Text(), Text.assemble(("Next  ", "bold"), (_next(found), "cyan")))


def _headline(found: Progress) -> str:
    launches, measured = found.launches.launches, found.launches.measured
    if not found.missing[1]:
        return f"all {measured} launches are measured" + ", some otherwise than the study says now" * bool(
            found.changed
        )
    return f"{measured} of {between(*launches)} launches measured, about {minutes_between(*found.seconds)} left"


def _facts(found: Progress) -> Iterator[tuple[str, RenderableType]]:
    amount = found.launches
    yield "measured", str(amount.measured - amount.unusable)
    if amount.failed:
        yield "failed", Text(str(amount.failed), style="red")
    if amount.unclean:
        yield "unusable", Text(f"{amount.unclean}: every round has a rejected window", style="yellow")
    yield "missing", between(*found.missing)
    for name, words in (("torn", found.torn), ("changed", found.changed)):
        if words:
            yield name, "\n".join(words)
    if found.looks:
        yield "looks", "\n".join(found.looks)
    yield "running", _running(found.running)
    if found.report:
        yield "report", found.report + (" (older than the newest launch)" if found.stale else "")


def _running(running: Running | None) -> str:
    if running is None:
        return "no"
    return f"process {running.process}, since {running.since:%Y-%m-%d %H:%M}"


def _next(found: Progress) -> str:
    study = study_argument(found.file)
    if found.running is not None:
        return f"castmates show{study} --progress"
    if found.missing[1]:
        return f"castmates sweep{study}"
    if found.launches.unusable:
        return f"castmates sweep{study} --retry"
    return f"castmates show{study}"
