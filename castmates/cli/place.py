"""`castmates advice --place`: which jobs should share which last-level cache."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from castmates.cli.screen import console, rows_of, show_json
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from rich.table import Table

    from castmates.analysis.findings.findings import Finding
    from castmates.pipeline.place import Request
    from castmates.report.grouping.words import Shown
    from castmates.results.trials import TrialRecord
    from castmates.study.finding_rules import Word


Solver = Literal["auto", "exhaustive", "milp"]


@dataclass(frozen=True)
class Placing:
    """Which jobs are placed where, and how groupings are looked for and measured."""

    jobs: Path | None
    machine: Path | None
    confirm: bool
    launches: int | None
    only_write: bool
    solver: Solver
    seconds: float


def place_jobs(study: Path, wish: Placing, cores: str, as_json: bool) -> None:
    """Show which jobs should share a cache, for a limit on what each may lose, and what that gains."""
    from castmates.pipeline.place import advised, request_of, write_studies
    from castmates.pipeline.snakemake import sweep
    from castmates.project import load
    from castmates.report.grouping.page import write

    request = request_of(load(study), wish.jobs, wish.machine)
    advice = advised(request, wish.solver, wish.seconds)
    given = "".join(f" --{key} {file}" for key, file in (("jobs", wish.jobs), ("machine", wish.machine)) if file)
    command = f"castmates advice {study} --place{given} --confirm"
    if wish.confirm and advice.found.best:
        files = write_studies(request, advice, wish.launches)
        for file in files:
            typer.echo(f"written: {file}", err=as_json)
        for file in [] if wish.only_write else files:
            sweep(file, cores, lambda line: typer.echo(line, err=as_json), shows_result=False)
    shown = _shown(request, advice, command)
    written = write(shown, request.project.results.place)
    if as_json:
        _print_json(shown)
    else:
        _print(shown)
    for file in written:
        typer.echo(file, err=as_json)
    if not advice.found.best:
        raise CastmatesError(f"{request.origin}: no grouping of these jobs can be judged; see above what is lacking.")


def _shown(request: "Request", advice: object, command: str) -> "Shown":
    from castmates.analysis.grouping.advice import Advice
    from castmates.pipeline.place import fresh_losses
    from castmates.report.grouping.words import Shown

    assert isinstance(advice, Advice)
    fresh, refused = fresh_losses(request, advice)
    return Shown(advice, fresh, tuple(refused), request.project.study.title, command)


def _print_json(shown: "Shown") -> None:
    from castmates.report.grouping.words import sentences

    found = shown.advice.found
    show_json(
        {
            "study": shown.advice.place.study,
            "platform": shown.advice.place.platform,
            "machine": shown.advice.place.machine,
            "solver": found.how,
            "groups": found.groups,
            "compared": found.seen,
            "gap_points": found.gap,
            "sentences": sentences(shown),
            "groupings": rows_of(shown.groupings),
            "ways": rows_of(shown.ways),
            "unknown": [list(pair) for pair in shown.advice.unknown],
            "confirm": shown.command,
        }
    )


def _print(shown: "Shown") -> None:
    from castmates.report.grouping.words import schemata, sentences, task

    where = console()
    if shown.origin:
        where.print(shown.origin.upper(), style="bold red", markup=False)
    where.print(f"{task(shown)}.", markup=False)
    for sentence in sentences(shown):
        where.print(f"• {sentence}", markup=False)
    for rank in sorted(set(shown.groupings["rank"])):
        where.print()
        where.print(_table(shown, rank))
        for line in schemata(shown, rank):
            where.print(f"  {line}", markup=False)
    where.print()


def _table(shown: "Shown", rank: int) -> "Table":
    """A row per job of a grouping."""
    from rich.table import Table

    from castmates.analysis.grouping.advice import RANKS
    from castmates.report.grouping.words import fresh_words, limit_words, loss_words
    from castmates.report.results import records
    from castmates.report.text.words import number

    rows = records(shown.groupings[shown.groupings["rank"] == rank])
    mean = shown.advice.found.best[rank - 1].mean_loss
    table = Table(box=None, title=f"{RANKS[rank - 1]} grouping: {number(mean)} % lost on average", title_justify="left")
    masks, fresh = any(row["mask"] for row in rows), any(row["confirmed_in"] for row in rows)
    heads = ["cache", "job", "beside", *(["ways"] if masks else []), "loses (%)", "known from", "limit"]
    for head in [*heads, *(["fresh launches (%)"] if fresh else [])]:
        table.add_column(head, overflow="fold")
    for row in rows:
        ways = [str(row["ways"]) if row["mask"] else "shared"] if masks else []
        cells = [str(row["domain"]), row["job"], row["beside"], *ways, loss_words(row), row["source"], limit_words(row)]
        table.add_row(*cells, *([fresh_words(row)] if fresh else []))
    return table


# `castmates advice --try`: the advice of a finding, measured in fresh launches.


@dataclass(frozen=True)
class Change:
    """What of the lead is changed in place of what the rule has, as it is written on the command line."""

    options: Sequence[str]
    variables: Sequence[str]
    cpus: int | None


def try_advice(study: Path, finding: str, change: Change, launches: int | None, cores: str, only_write: bool) -> None:
    """Measure what the advice of a finding gives: the lead as it is and changed, in fresh launches in mixed order."""
    from castmates.pipeline.confirm import Asked, write_trial_study
    from castmates.pipeline.snakemake import sweep
    from castmates.project import load
    from castmates.report.findings import findings_of
    from castmates.report.results import read_results
    from castmates.results.plans import read_plan

    project = load(study)
    folder = project.results
    plan = read_plan(folder.plan_file)
    chosen = _chosen(findings_of(read_results(folder.path, project.study_file)), finding)
    if chosen.rule.trial and chosen.rule.trial.command:
        raise CastmatesError(f"{chosen.id} is tried by another command, which `castmates advice {study}` shows.")
    if not chosen.found:
        typer.echo(f"note: {chosen.id} is {chosen.state}", err=True)
    trial = write_trial_study(
        project, plan, Asked(chosen, _options(change.options), launches, _variables(change.variables), change.cpus)
    )
    file = folder.trial_study_file(trial.name)
    typer.echo(f"written: {file}", err=True)
    if only_write:
        return
    sweep(file, cores, lambda line: typer.echo(line, err=True), shows_result=False)
    _show(trial, study)
    if len(plan.launches) == len(folder.measured(plan).launches):  # its page shows the gain too
        sweep(study, cores, lambda line: typer.echo(line, err=True), shows_result=False)


def _show(trial: "TrialRecord", study: Path) -> None:
    """What the trial gave; the gains also as a table."""
    from castmates.project import load
    from castmates.report.findings import read_trial
    from castmates.report.text.words import sentences
    from castmates.results.tables import write_table

    folder = load(study).results
    tried = read_trial(trial, folder)
    if len(tried.gains):
        write_table(tried.gains, folder.trial(trial.name) / "gains")
    for sentence in sentences(tried):
        typer.echo(sentence.replace("`", ""))


def _chosen(found: "Sequence[Finding]", named: str) -> "Finding":
    """The finding of this name; that of a rule, where it has but one."""
    exact = [each for each in found if each.id == named and (each.subject.lead or each.subject.mix)]
    of_rule = [each for each in found if each.name == named and (each.subject.lead or each.subject.mix)]
    ones = exact or [each for each in of_rule if each.found] or of_rule
    if len(ones) == 1 or exact:
        return ones[0]
    if ones:
        raise CastmatesError(f"{named} has several findings; give one of: {', '.join(each.id for each in ones[:8])}.")
    if why := next((each.why for each in found if each.name == named), ""):
        raise CastmatesError(f"nothing is known of {named}: {why}.")
    from castmates.study.reading import did_you_mean

    meant = did_you_mean(named, [each.id for each in found])
    raise CastmatesError(f"there is no finding '{named}'{meant}; `castmates advice --all` lists what there is.")


def _options(given: Sequence[str]) -> "dict[str, Word]":
    """`batch=64` -> {batch: 64}."""
    from castmates.study.reading import parsed

    options: dict[str, Word] = {}
    for each in given:
        name, equals, text = each.partition("=")
        value = parsed(text, f"--set {name}") if text and text not in ("on", "off", "yes", "no") else text
        if not equals or not name or not isinstance(value, str | int | float | bool) or value == "":
            raise CastmatesError(f"--set is '{each}', but expected NAME=VALUE, such as batch=64.")
        options[name.removeprefix("--")] = value
    return options


def _variables(given: Sequence[str]) -> dict[str, str]:
    """`MALLOC_ARENA_MAX=1` -> {MALLOC_ARENA_MAX: 1}; a value may be empty, and may have = in it."""
    variables: dict[str, str] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise CastmatesError(f"--variable is '{each}', but expected NAME=VALUE, such as MALLOC_ARENA_MAX=1.")
        variables[name] = text
    return variables
