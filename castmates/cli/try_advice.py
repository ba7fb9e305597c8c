"""`castmates advice --try`: the advice of a finding, measured in fresh launches."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.analysis.findings.findings import Finding
    from castmates.results.trials import TrialRecord
    from castmates.study.finding_rules import Word


@dataclass(frozen=True)
class Change:
    """What of the lead is changed in place of what the rule has, as it is written on the command line."""

    options: Sequence[str]
    variables: Sequence[str]
    cpus: int | None


def try_advice(study: Path, finding: str, change: Change, launches: int | None, cores: str, only_write: bool) -> None:
    """Measure what the advice of a finding gives: the lead as it is and changed, in fresh launches in mixed order."""
    from castmates.pipeline.snakemake import sweep
    from castmates.pipeline.try_advice import Asked, write_trial_study
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
        project,
        plan,
        Asked(chosen, _options(change.options), launches, _variables(change.variables), change.cpus),
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
    from castmates.report.text.trials import sentences
    from castmates.report.trials import read_trial
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
