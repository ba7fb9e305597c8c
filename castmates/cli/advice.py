"""The command `castmates advice`: what is worth knowing of a study, trials of it, and places of jobs."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.command import INSTEAD, RESULTS, Cores, Format, StudiedOrDefault, command, only_with, option
from castmates.cli.place import Solver, place_jobs
from castmates.cli.screen import console, show_json
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.analysis.findings.findings import Finding
    from castmates.report.results import Results
    from castmates.report.text.findings import InWords
    from castmates.results.trials import TrialRecord
    from castmates.study.finding_rules import Word


TRY, PLACE = only_with("--try"), only_with("--place")
BOTH = only_with("--try", "--confirm")
SOLVING = 60.0


@command(
    "advice",
    "castmates advice study.yaml",
    "castmates advice study.yaml --try input-bound/dlrm-train",
    "castmates advice study.yaml --place --jobs jobs.yaml",
    group=RESULTS,
    order=5,
)
def advice(
    study: StudiedOrDefault,
    everything: Annotated[
        bool, option("--all", help="Also what is suspected, what is not shown, and what is not known, and why.")
    ] = False,
    form: Format = "text",
    finding: Annotated[
        str,
        option(
            "--try",
            metavar="FINDING",
            help="Measure what this advice gives: the lead as it is and changed, in fresh launches in mixed order.",
            under=INSTEAD,
        ),
    ] = "",
    place: Annotated[
        bool,
        option(
            "--place",
            help="Show which jobs should share which last-level cache, for a limit on what each may lose.",
            under=INSTEAD,
        ),
    ] = False,
    options: Annotated[
        list[str] | None,
        option(
            "--set", metavar="NAME=VALUE", help="An option of the lead to change, in place of the rule's.", under=TRY
        ),
    ] = None,
    variables: Annotated[
        list[str] | None,
        option(
            "--variable", metavar="NAME=VALUE", help="An environment variable of the lead to try instead.", under=TRY
        ),
    ] = None,
    cpus: Annotated[
        int | None, option(min=1, metavar="N", help="How many CPUs to give the lead instead.", under=TRY)
    ] = None,
    jobs: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="A YAML file with the keys of `place`: jobs, domains, cores … The study's if left out.",
            under=PLACE,
        ),
    ] = None,
    machine: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Place on the machine that `castmates doctor --capture` wrote into this file.",
            under=PLACE,
        ),
    ] = None,
    solver: Annotated[
        Solver,
        option(help="auto: try all groupings where they are few, else an integer programme (HiGHS).", under=PLACE),
    ] = "auto",
    seconds: Annotated[
        float,
        option(
            min=1.0,
            max=86_400.0,
            metavar="S",
            help="That the integer programme may take for each grouping.",
            under=PLACE,
        ),
    ] = SOLVING,
    confirm: Annotated[
        bool, option("--confirm", help="Measure the best three groupings, each group by itself.", under=PLACE)
    ] = False,
    launches: Annotated[
        int | None,
        option(
            min=3, max=10_000, metavar="N", help="Fresh launches; the study's own number, and at least 3.", under=BOTH
        ),
    ] = None,
    cores: Cores = "all",
    only_write: Annotated[
        bool, option("--only-write", help="Write the study files and measure nothing.", under=BOTH)
    ] = False,
) -> None:
    """Show findings and what to do about them; try advice, place jobs."""
    if not (finding or place):
        show_findings(study, everything, form == "json")
        return
    from castmates.linux.ownership import refuse_strangers
    from castmates.results.find import study_file

    file = study_file(study)
    refuse_strangers(file)
    if finding:
        try_advice(file, finding, options or [], variables or [], cpus, launches, cores, only_write)
    else:
        place_jobs(file, jobs, machine, confirm, launches, only_write, solver, seconds, cores, form == "json")


# `castmates advice`: what is worth knowing of a study, and what to try.


def show_findings(study: Path, everything: bool, as_json: bool) -> None:
    """Show what is worth knowing of a measured study: by which numbers, why it matters, and what tries it."""
    from castmates.report.findings import findings_of
    from castmates.report.results import read_results
    from castmates.report.text.findings import by_rule, in_words, others
    from castmates.results.find import find_traces

    folder, file = find_traces(study, or_sweep=True)
    if not (folder.tables.is_dir() or folder.plan_file.is_file()):  # traces alone, of a version that made no tables
        from castmates.pipeline.estimates import write_trace_tables

        write_trace_tables(folder, folder.tables)
    results = read_results(folder.path, file, every=False)
    found = findings_of(results)
    if as_json:
        show_json({"study": results.name, "findings": [_as_data(results, each) for each in found]})
        return
    where = console()
    shown = [in_words(results, each) for each in found if each.found or (everything and each.suspected)]
    for group in by_rule(shown):
        _show(group)
    if not shown:
        where.print("Nothing is found.", markup=False)
    rest = [each for each in found if not each.found and not (everything and each.suspected)]
    if everything:
        for line in _rest(rest):
            where.print(line, markup=False, soft_wrap=True, highlight=False)
    elif rest:
        where.print(f"{others(rest)}; --all lists them.", markup=False, soft_wrap=True, highlight=False)


def _show(group: "Sequence[InWords]") -> None:
    """The findings of one rule: each with its numbers and commands, and once why they matter and what to do."""
    where, first = console(), group[0]
    stamp = "" if first.platform in ("measured", "") else f"{first.platform}: "
    head = f"{stamp}{first.title}" + (f"  ({first.id})" if len(group) == 1 else "")
    where.print(head, style="bold", markup=False, soft_wrap=True, highlight=False)
    lines = []
    for each in group:
        lines += [each.sentence + (f"  ({each.id})" if len(group) > 1 else ""), f"It is {each.sure}."]
        lines += [f"Shown by {line.replace('`', '')}." for line in each.evidence]
        lines += [f"To see it: {each.look}"] if each.look else []
        lines += [f"Where: {each.place.replace('`', '')}."] if each.place else []
        lines += [f"To try it: {each.command}"] if each.command else []
    lines += [f"Why it matters: {first.because}", f"What to do: {first.advice}"]
    lines += dict.fromkeys(f"A trial shows: {each.shows}" for each in group if each.command)
    for line in filter(None, lines):
        where.print(f"  {line.replace('`', '')}", markup=False, soft_wrap=True, highlight=False)
    where.print("", markup=False)


def _rest(rest: "Sequence[Finding]") -> Iterator[str]:
    """A line for each rule and state: of several leads or mixes the one that comes nearest, or the first."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for one in rest:
        alike.setdefault((one.name, one.state), []).append(one)
    for (name, _), ones in alike.items():
        more = f", and of {len(ones) - 1} more" if len(ones) > 1 else ""
        who = ones[0].id.removeprefix(name).lstrip("/")
        yield f"{name}{f' ({who}{more})' if who else ''}: {_why(ones[0])}"


def _why(finding: "Finding") -> str:
    """Why it is no finding: its number beside the threshold, or what is missing."""
    from castmates.analysis.findings.conditions import NOT_KNOWN
    from castmates.report.text.findings import evidence_words

    if finding.state == NOT_KNOWN:
        return f"{finding.state}: {finding.why}"
    each = next(one for one in finding.evidence if one.state == finding.state)
    return f"{finding.state}: {evidence_words(each).replace('`', '') if each.cells else each.why}"


def _as_data(results: "Results", finding: "Finding") -> dict[str, object]:
    from castmates.report.text.findings import in_words

    words, rule = in_words(results, finding), finding.rule
    evidence = [
        {
            "table": each.table,
            "row": dict(each.row),
            "number": each.number,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "threshold": each.threshold,
            "side": "above" if each.is_above else "below",
            "state": each.state,
            "remark": each.why,
        }
        for each in finding.evidence
    ]
    return {
        "id": finding.id,
        "rule": finding.name,
        "about": rule.about,
        "lead": finding.subject.lead,
        "mix": finding.subject.mix,
        "platform": finding.subject.platform,
        "title": rule.title,
        "state": finding.state,
        "sure": words.sure,
        "sentence": words.sentence,
        "because": rule.because,
        "advice": rule.advice,
        "evidence": evidence,
        "look": words.look,
        "trace": words.trace,
        "place": words.place,
        "try": words.command,
        "shows": words.shows,
        "sources": list(rule.sources),
    }


# `castmates advice --try`: the advice of a finding, measured in fresh launches.


def try_advice(
    study: Path,
    finding: str,
    options: Sequence[str],
    variables: Sequence[str],
    cpus: int | None,
    launches: int | None,
    cores: str,
    only_write: bool,
) -> None:
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
    asked = Asked(chosen, _options(options), launches, _variables(variables), cpus)
    trial = write_trial_study(project, plan, asked)
    file = folder.trial_study_file(trial.name)
    typer.echo(f"written: {file}", err=True)
    if only_write:
        return
    say = partial(typer.echo, err=True)
    sweep(file, cores, say, shows_result=False)
    _show_trial(trial, study)
    measured = len(folder.measured(plan).launches)
    if measured in (0, len(plan.launches)):  # its page shows the gain too, of a profile without measuring anything
        sweep(study, cores, say, shows_result=False, only_traces=not measured)


def _show_trial(trial: "TrialRecord", study: Path) -> None:
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
    raise CastmatesError(f"there is no finding '{named}'{meant} (`castmates advice --all` lists what there is).")


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
