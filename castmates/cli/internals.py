"""The commands `castmates internals …`: what only rules and contributors call."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.command import Runner, StudyFile, command, family
from castmates.errors import CastmatesError

family("internals", "What only rules and contributors call.")

Table = Annotated[Path, typer.Option("--output", "-o", help="The table to write: .parquet or .csv.", metavar="FILE")]
Study = Annotated[str, typer.Option("--study", metavar="NAME", help="The study that the rows name.")]
Member = Annotated[str, typer.Option("--member", metavar="NAME", help="The program whose slots they are.")]
Scene = Annotated[str, typer.Option("--scene", metavar="SCENE", help="The scene that was measured, such as alone.")]


@command("internals run", "castmates internals run chase-3f0c2a91/1 study.yaml", kind=Runner)
def run(
    launch: Annotated[
        str, typer.Argument(metavar="LAUNCH", help="COHORT/NUMBER, as `castmates plan --scenes` prints it.")
    ],
    study: StudyFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="For its files; its place in results/ if left out."),
    ] = None,
) -> None:
    """Measure one launch without the workflow; its environments must be built."""
    from castmates.files import cache_folder
    from castmates.pipeline.measure_launch import measure_launch
    from castmates.project import load
    from castmates.results.columns.launch import RECORD

    project = load(study)
    folder = output or project.results.launch(launch)
    if (folder / RECORD).exists():
        raise CastmatesError(f"{folder} holds a measured launch; remove it first, or give another --output.")
    measure_launch(project.plan(), launch, folder, cache_folder())


@command("internals build-environment", "castmates internals build-environment native", kind=Runner)
def build_environment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="native, or the NAME of envs/NAME.lock.")],
) -> None:
    """Build what a workload runs in, once for each content of its lock."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.workloads import environments

    known = environments.known(ENVIRONMENTS)
    if name not in known:
        raise CastmatesError(f"there is no environment '{name}'; there are: {', '.join(known)}.")
    typer.echo(environments.build(name, ENVIRONMENTS, cache_folder()))


@command("internals build-inputs", "castmates internals build-inputs text", kind=Runner)
def build_inputs(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The data set; without one they are listed.")
    ] = None,
) -> None:
    """Make a data set that workloads read, once for each content of its generator."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.workloads import inputs

    if name is not None:
        typer.echo(inputs.build(name, ENVIRONMENTS, cache_folder()))
        return
    for data_set in inputs.known():
        place = inputs.location(data_set, ENVIRONMENTS, cache_folder())
        typer.echo(f"{data_set:24} {place if inputs.ready_file(place).is_file() else 'not made yet'}")


@command("internals schemas", "castmates internals schemas --check")
def schemas(check: Annotated[bool, typer.Option("--check", help="Only check whether they are stale.")] = False) -> None:
    """Write the JSON Schemas of the YAML files, for editors."""
    from castmates.files import replace_text
    from castmates.study.reading import SCHEMAS, schema_text

    for name in SCHEMAS:
        file = Path("config/schemas") / name
        if check and (not file.is_file() or file.read_text() != schema_text(name)):
            raise CastmatesError(f"{file} is stale; run `make schemas` and commit it.")
        if not check:
            replace_text(file, schema_text(name))
            typer.echo(file)


@command("internals import-toplev", "castmates internals import-toplev toplev.csv -o topdown.parquet")
def import_toplev(
    file: Annotated[Path, typer.Argument(help="The file that `toplev -x, -v -o FILE` wrote.", metavar="FILE")],
    output: Table,
    study: Study = "",
    member: Member = "",
    scene: Scene = "",
) -> None:
    """Read a file of toplev and write it as rows of the table `topdown`, whose source is toplev."""
    _write(str(file), _read(file), output, study, member, scene, platform="")


@command(
    "internals record-toplev", "castmates internals record-toplev --toplev toplev.py -o topdown.csv -- gzip -9 FILE"
)
def record_toplev(
    program: Annotated[list[str], typer.Argument(help="What to run, after --.", metavar="COMMAND...")],
    toplev: Annotated[Path, typer.Option("--toplev", help="toplev.py of pmu-tools.", metavar="FILE")],
    output: Table,
    level: Annotated[int, typer.Option(min=1, max=3, metavar="N", help="The deepest level to read.")] = 2,
    python: Annotated[
        str, typer.Option("--python", metavar="FILE", help="The interpreter that toplev runs in.")
    ] = sys.executable,
    study: Study = "",
    member: Member = "",
    scene: Scene = "",
) -> None:
    """Run a command below toplev, in another interpreter, and write the table."""
    import tempfile

    from castmates.counters.topdown.toplev import run_toplev
    from castmates.machine.probes import platform_here

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "toplev.csv"
        run_toplev(toplev, python, level, file, program)
        _write("toplev", _read(file), output, study, member, scene, platform_here())


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise CastmatesError(f"{file} cannot be read: {problem.strerror}; give a file of toplev.") from None


def _write(source: str, text: str, output: Path, study: str, member: str, scene: str, platform: str) -> None:
    from castmates.counters.topdown.toplev import read_toplev, rows
    from castmates.files import replace, writing
    from castmates.results.columns.launch import TOPDOWN
    from castmates.results.columns.study import frame

    if output.suffix not in (".parquet", ".csv"):
        raise CastmatesError(f"--output {output}: the name of a table ends with .parquet or .csv.")
    try:
        table = frame(rows(read_toplev(text), study, member, scene, platform), TOPDOWN)
    except CastmatesError as problem:
        raise CastmatesError(f"{source}: {problem}") from None
    written = table.to_parquet if output.suffix == ".parquet" else table.to_csv
    with writing(output):
        replace(output, lambda path: written(path, index=False))
    typer.echo(f"{len(table)} rows of {table['window'].nunique()} intervals in {output}")
