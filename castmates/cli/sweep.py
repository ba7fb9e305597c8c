"""The command `castmates sweep`: what is missing of a study is measured, and its report is written."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from castmates.cli.command import (
    BEGIN,
    INSTEAD,
    LIMIT,
    Cores,
    Launches,
    Quiet,
    Runner,
    StudyFile,
    TextOrJson,
    Verbose,
    command,
    enough,
    limit_of,
    loudness,
    margin_of,
    only_with,
    option,
)
from castmates.cli.replay import Replaying, replay_published
from castmates.errors import CastmatesError

ANALYSES = ("gather_launches", "estimate_operations", "estimate_traces", "analyse")  # rules that make tables
DRY = re.compile(r"--dry.*|-[aDfFklpSt]*n.*")  # Snakemake's words for a dry run, which may stand behind --
ELSEWHERE = re.compile(r"--(executor|profile|workflow-profile)|-e")  # jobs may run where other programs are
CONFIRM, REPLAY, SESSIONS = only_with("--confirm"), only_with("--replay"), only_with("--sessions")


class _Sweep(Runner):
    """What comes after `--` is for Snakemake."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 (typer does not export the type)
        """Keep it apart."""
        if "--" in args:
            where = args.index("--")
            ctx.meta["snakemake"] = args[where + 1 :]
            args = args[:where]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Show it."""
        return [*super().collect_usage_pieces(ctx), "[-- SNAKEMAKE'S OPTIONS]"]


@command(
    "sweep",
    "castmates sweep study.yaml",
    "castmates sweep study.yaml --launches 12 -j 4",
    "castmates sweep study.yaml --sessions 4 --over 6h",
    "castmates sweep study.yaml --confirm --limit 3%",
    "castmates sweep --replay first-look/paper",
    "castmates sweep study.yaml --rehearse genoa",
    "castmates sweep study.yaml -- --rerun-incomplete",
    group=BEGIN,
    order=5,
    kind=_Sweep,
)
def sweep(
    context: typer.Context,
    study: StudyFile,
    launches: Launches = None,
    cores: Cores = "all",
    dry_run: Annotated[bool, option("--dry-run", "-n", help="Only list the jobs that would run.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    again: Annotated[
        bool, option("--analyse-again", help="Make all tables again from what is measured, as for a new version.")
    ] = False,
    retry: Annotated[
        bool, option("--retry", help="Discard failed and unusable launches first, and measure them again.")
    ] = False,
    changed: Annotated[
        bool,
        option(
            "--changed",
            help="Also launches that were measured otherwise than the study says now.",
            under=only_with("--retry"),
        ),
    ] = False,
    sessions: Annotated[
        int | None,
        option(
            "--sessions",
            metavar="N",
            min=2,
            max=1000,
            help="Spread the launches over N sessions and wait in between: a loss may differ from hour to hour.",
        ),
    ] = None,
    over: Annotated[
        str,
        option(metavar="TIME", help="From the first session to the last one: 90m, 6h, 2d.", under=SESSIONS),
    ] = "",
    due: Annotated[
        bool, option("--due", help="Measure what is due now, and end: for cron and Slurm.", under=SESSIONS)
    ] = False,
    confirm: Annotated[
        bool,
        option(
            "--confirm",
            help="Measure the advised shares of the cache in fresh launches, and renew the report.",
            under=INSTEAD,
        ),
    ] = False,
    replay: Annotated[
        bool,
        option(
            "--replay",
            is_eager=True,
            help="Measure a published study again here, and compare: STUDY is a folder that `castmates paper` wrote, "
            "results/<study>, or launches/<cohort>/<number> in one of them. Status 3: an effect differs; 4: unclear.",
            under=INSTEAD,
        ),
    ] = False,
    rehearse: Annotated[
        str,
        option(
            metavar="MACHINE",
            help="Run the study's programs here, and share the cache out in memory only, as on another machine "
            "(castmates plan --help): the whole way, before that machine is booked. Masks change nothing.",
            under=INSTEAD,
        ),
    ] = "",
    limit: Annotated[str, option(metavar="PERCENT", show_default=False, help=LIMIT, under=CONFIRM)] = "",
    mix: Annotated[
        str, option(metavar="MIX", help="Only this mix; all with an advice if left out.", under=CONFIRM)
    ] = "",
    partition: Annotated[
        str, option(metavar="NAME", help="Of --mix: this partition, advised or not.", under=only_with("--mix"))
    ] = "",
    lead: Annotated[str, option(metavar="NAME", help="Only the mixes of this lead.", under=REPLAY)] = "",
    name: Annotated[
        str, option(metavar="NAME", help="Name of the replay; the study's with -replay if left out.", under=REPLAY)
    ] = "",
    margin: Annotated[
        str,
        option(metavar="N%", help="The largest difference that counts as none, such as 2%; the study's.", under=REPLAY),
    ] = "",
    form: Annotated[
        TextOrJson, option("--format", metavar="FORMAT", help="text, or json for scripts.", under=REPLAY)
    ] = "text",
    only_write: Annotated[
        bool,
        option(
            "--only-write",
            help="Write the study files and measure nothing.",
            under=only_with("--confirm", "--replay", "--rehearse"),
        ),
    ] = False,
) -> None:
    """Measure what is missing of a study, and write its report.

    Ctrl-C is safe: the same command goes on where it stopped.
    """
    options = [*loudness(quiet, verbose), *context.meta.get("snakemake", [])]
    dry_run = dry_run or any(map(DRY.fullmatch, options))
    if (confirm or replay) and (dry_run or again or retry):
        raise CastmatesError("--confirm and --replay measure studies of their own: not with -n, --retry or another.")
    if sessions and (confirm or replay or again or retry):
        raise CastmatesError("--sessions only measures what is missing: not with --retry, --confirm or another.")
    if retry and dry_run:
        raise CastmatesError("--retry discards launches, so it cannot be tried by --dry-run.")
    if rehearse:
        from castmates.pipeline.rehearse import write_rehearsal

        study = write_rehearsal(study, rehearse)
        typer.echo(f"written: {study}")
        if only_write:
            return
    if confirm:
        confirm_partitions(study, limit, (mix, partition), launches, cores, options, only_write)
    elif replay:
        wish = Replaying(lead, launches, name, margin_of(margin), only_write, form == "json")
        replay_published(study, wish, cores, options)
    elif sessions:
        options += ["--dry-run"] if dry_run else []
        spread_launches(study, (sessions, over, due), launches, cores, options, dry_run)
    else:
        if retry:
            from castmates.pipeline.failures import discard

            for sentence in discard(study, changed):
                typer.echo(sentence)
        options += [*(["--dry-run"] if dry_run else []), *(["--forcerun", *ANALYSES] if again else [])]
        _sweep(study, launches, cores, options, dry_run)


def _sweep(study: Path, launches: int | None, cores: str, options: list[str], dry_run: bool) -> None:
    from castmates.pipeline import snakemake
    from castmates.pipeline.missing_programs import refuse_missing_programs
    from castmates.pipeline.snakemake import refuse_nothing
    from castmates.project import load
    from castmates.results.records import torn_words

    project = load(study, launches)
    found = project.found()
    plan = project.plan(found)  # what is wrong or has no place here is one sentence; Snakemake is not started for it
    if not any(ELSEWHERE.match(option) for option in options):
        refuse_missing_programs(project, plan)
    for sentence in torn_words(found.torn):
        typer.echo(sentence, err=True)
    snakemake.sweep(study, cores, lambda line: typer.echo(line, err=True), launches, options)
    if not dry_run:
        refuse_nothing(project)


# `castmates sweep --sessions`: the launches are spread over hours.


def spread_launches(
    study: Path, wish: tuple[int, str, bool], launches: int | None, cores: str, options: Sequence[str], dry: bool
) -> None:
    """Measure the sessions as they are due; the same command goes on after an interruption."""
    from dataclasses import replace

    from castmates.pipeline.sessions import Clock, Wish, spread
    from castmates.pipeline.snakemake import refuse_nothing, sweep
    from castmates.project import load

    say = partial(typer.echo, err=True)

    def measure(targets: Sequence[str], is_last: bool) -> None:
        sweep(study, cores, say, launches, options, shows_result=is_last, targets=targets)
        if not dry:
            refuse_nothing(load(study, launches))

    spread(study, replace(Wish.of(*wish), dry=dry), launches, measure, say, Clock())


# `castmates sweep --confirm`: fresh launches for advised partitions.


def confirm_partitions(
    study: Path,
    limit: str,
    wish: tuple[str, str],
    launches: int | None,
    cores: str,
    options: Sequence[str],
    only_write: bool,
) -> None:
    """Measure the advised shares of the cache again, each in a separate study; `wish` is a mix and a partition."""
    from castmates.pipeline.confirm import advised, wanted, write_study
    from castmates.pipeline.snakemake import sweep
    from castmates.project import load
    from castmates.results.find import find
    from castmates.results.plans import read_plan
    from castmates.study.confirmation import FEWEST_LAUNCHES

    enough(launches, FEWEST_LAUNCHES, "--confirm")
    find(study)
    project = load(study)
    folder = project.results
    plan = read_plan(folder.plan_file)
    mix, partition = wish
    chosen = [wish] if partition else wanted(project.study, plan, advised(project, plan, limit_of(limit)), mix)
    files = [write_study(project, plan, *each, launches) for each in chosen]
    for file in files:
        typer.echo(f"written: {file}")
    if only_write:
        return
    for file in files:
        sweep(file, cores, typer.echo, options=options)
    if missing := len(plan.launches) - len(folder.measured(plan).launches):
        typer.echo(f"{missing} launches of {study} are still missing; its page is renewed by its next sweep.")
        return
    sweep(study, cores, typer.echo, options=options)
