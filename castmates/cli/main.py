"""The command `castmates`."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from castmates import __version__
from castmates.cli import compare, paper, recommend, topdown, workloads
from castmates.cli.arguments import DEFAULT_STUDY, StudyFile
from castmates.errors import CastmatesError

# Everything heavy is imported inside the commands: `castmates --help` and `doctor` must be instant.
app = typer.Typer(
    name="castmates",
    help="Co-location interference studies: how much a program loses beside others, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(workloads.app, name="workloads")
app.add_typer(topdown.app, name="topdown")
app.command()(compare.compare)
app.command()(paper.paper)


def main() -> None:
    """Run the command line; an error is a sentence and a non-zero exit."""
    try:
        app()
    except CastmatesError as problem:
        sys.exit(f"castmates: {problem}")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"castmates {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Options of the whole command."""


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    snapshot: Annotated[
        Path | None, typer.Option(help="Record this machine's CPUs, caches and nodes in this file instead.")
    ] = None,
    verify_cat: Annotated[
        bool, typer.Option("--verify-cat", help="Try instead whether way masks do something on this machine.")
    ] = False,
    verify_counters: Annotated[
        bool, typer.Option("--verify-counters", help="Try instead whether counters count right on this machine.")
    ] = False,
) -> None:
    """Say what this machine can and cannot do, what each "no" costs, and how to change it."""
    if snapshot is not None:
        from castmates.machine.snapshot import record

        record(snapshot)
        return
    if verify_cat:
        from castmates import project
        from castmates.trials.way_masks.trial import verify

        verify(project.ENVIRONMENTS, project.cache(), typer.echo)
        return
    if verify_counters:
        _verify_counters(as_json)
        return
    from castmates.files import cache_folder
    from castmates.machine import trial_records
    from castmates.machine.doctor import doctor as examination
    from castmates.machine.facts import machine_facts
    from castmates.machine.topology import read_topology
    from castmates.workloads import packages

    topology = read_topology()
    facts = machine_facts(topology=topology) | {
        "calibration": trial_records.WAY_MASKS.read(cache_folder()),
        "counts": trial_records.COUNTERS.read(cache_folder()),
        "packages": packages.missing(workloads.CATALOGUE),
    }
    checks = examination.examine(facts, topology)
    if as_json:
        typer.echo(examination.as_json(checks))
    else:
        from rich.console import Console

        Console(highlight=False).print(examination.as_table(checks))


def _verify_counters(as_json: bool) -> None:
    """Count what is known, print the table, and end with an error where a count is wrong."""
    import json

    from rich.console import Console

    from castmates import project
    from castmates.trials.counters import check, table

    record = check.verify(project.ENVIRONMENTS, project.cache(), lambda word: typer.echo(word, err=True))
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        Console(highlight=False).print(table.as_table(record))
    check.raise_if_wrong(record)


@app.command()
def plan(
    study: StudyFile = DEFAULT_STUDY,
    machine: Annotated[
        Path | None, typer.Option(help="Only place the mixes, on the machine that `doctor --snapshot` recorded here.")
    ] = None,
) -> None:
    """Print mixes, scenes, blocks, windows and the expected duration, before anything runs."""
    from castmates import project
    from castmates.preview import study as outlook

    loaded = project.load(study)
    if machine is None:
        typer.echo(outlook.describe(loaded), nl=False)
        return
    from castmates.machine.snapshot import read_snapshot

    typer.echo(outlook.describe_places(loaded, read_snapshot(machine)), nl=False)


@app.command()
def pilot(
    study: StudyFile = DEFAULT_STUDY,
    blocks: Annotated[int, typer.Option(min=2, max=1000, help="Blocks of each company.")] = 3,
) -> None:
    """Measure a few blocks, and propose rounds, blocks, window and settle time for the study."""
    from castmates import project
    from castmates.pipeline import pilot as trial

    loaded = project.load(study)
    typer.echo(trial.propose(loaded, trial.measure(loaded, blocks)), nl=False)


@app.command()
def run(
    block: Annotated[str, typer.Argument(help="COMPANY/NUMBER, as `castmates plan` prints it.")],
    study: StudyFile = DEFAULT_STUDY,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the block's files; its place in results/ if left out.")
    ] = None,
) -> None:
    """Measure one block without the workflow (its environments must be built)."""
    from castmates import project
    from castmates.measuring import runner_of
    from castmates.pipeline.measure_block import measure_block

    loaded = project.load(study)
    folder = output or loaded.results / "blocks" / block
    if (folder / "block.json").exists():
        raise CastmatesError(f"{folder} holds a measured block; remove it first, or give another --output.")
    measure_block(loaded.plan(), block, folder, project.cache(), choose=runner_of)


@app.command()
def retry(study: StudyFile = DEFAULT_STUDY) -> None:
    """Forget the blocks that failed, or in which every round has a rejected window: the next sweep measures them."""
    from castmates import project

    results = project.load(study).results
    forgotten = 0
    for file in sorted(results.glob("blocks/*/*/block.json")):
        if reason := project.useless(project.read_record(file)):
            try:
                shutil.rmtree(file.parent)
            except OSError as error:
                raise CastmatesError(
                    f"{file.parent} cannot be removed ({error.strerror}): give write access there, and run the same "
                    "command again."
                ) from None
            typer.echo(f"forgotten ({reason}): {file.parent}")
            forgotten += 1
    typer.echo(f"{forgotten} block{'' if forgotten == 1 else 's'} forgotten in {results}")


recommend.add_to(app)


@app.command()
def restore() -> None:
    """Put right what killed runs have left: changed knobs, control groups, scratch folders."""
    from castmates.runner.cleanup.restore import restore_everything

    restored = restore_everything()
    for sentence in restored.done or ([] if restored.left else ["nothing to restore"]):
        typer.echo(sentence)
    if restored.left:
        raise CastmatesError("; ".join(restored.left))


@app.command()
def grant(
    user: Annotated[str | None, typer.Option(help="Who is to run sweeps; who called sudo if left out.")] = None,
    groups: Annotated[int, typer.Option(min=1, max=1000, help="Groups with masks of their own, at most.")] = 6,
    default_group: Annotated[
        bool, typer.Option("--default-group", help="Also the masks of everybody who is in no group.")
    ] = False,
    shell: Annotated[
        int | None, typer.Option(min=2, help="Number of the shell that starts sweeps; the calling one if left out.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take everything back instead.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Only say what is granted.")] = False,
) -> None:
    """Give a user, once and by root, what sweeps need, so that they run without root; each step is told."""
    from castmates.grant import grant as everything

    if show:
        everything.show(typer.echo)
    elif undo:
        everything.undo(typer.echo)
    else:
        everything.give(user, groups, default_group, shell, typer.echo)


@app.command("build-environment")
def build_environment(
    name: Annotated[str, typer.Argument(help="native, or the NAME of envs/NAME.lock.")],
) -> None:
    """Build what a workload runs in, once for each content of its lock."""
    from castmates import project
    from castmates.workloads import environments

    known = environments.known(project.ENVIRONMENTS)
    if name not in known:
        raise CastmatesError(f"there is no environment '{name}'; there are: {', '.join(known)}.")
    typer.echo(environments.build(name, project.ENVIRONMENTS, project.cache()))


@app.command("build-inputs")
def build_inputs(
    name: Annotated[str | None, typer.Argument(help="The data set; without one they are listed.")] = None,
) -> None:
    """Make a data set that workloads read, once for each content of its generator."""
    from castmates import project
    from castmates.workloads import inputs

    if name is None:
        for one in inputs.known():
            place = inputs.location(one, project.ENVIRONMENTS, project.cache())
            typer.echo(f"{one:24} {place if inputs.ready_file(place).is_file() else 'not made yet'}")
    else:
        typer.echo(inputs.build(name, project.ENVIRONMENTS, project.cache()))


@app.command()
def schemas(
    check: Annotated[bool, typer.Option("--check", help="Only say whether they are stale.")] = False,
) -> None:
    """Write the JSON Schemas of the YAML files, for editors."""
    from castmates.files import replace_text
    from castmates.study.schema import SCHEMAS, text_of

    for name in SCHEMAS:
        file = Path("config/schemas") / name
        if check and (not file.is_file() or file.read_text() != text_of(name)):
            raise CastmatesError(f"{file} is stale; run `make schemas` and commit it.")
        if not check:
            replace_text(file, text_of(name))
            typer.echo(file)
