"""The command `castmates topdown`: Top-Down shares that toplev counted, as rows of our table."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.help import Command, Group, example
from castmates.errors import CastmatesError

topdown = typer.Typer(
    name="topdown",
    cls=Group,
    help="Top-Down shares from toplev (pmu-tools), counted here or elsewhere, as a table.",
    epilog=example("castmates topdown import toplev.csv --output topdown.parquet"),
)

Output = Annotated[Path, typer.Option("--output", help="The table to write: .parquet or .csv.", metavar="FILE")]
Study = Annotated[str, typer.Option("--study", help="The study that the rows name.")]
Member = Annotated[str, typer.Option("--member", help="The program whose slots they are.")]
Scene = Annotated[str, typer.Option("--scene", help="The scene that was measured, such as solo.")]


@topdown.command("import", cls=Command)
def import_toplev(
    file: Annotated[Path, typer.Argument(help="The file that `toplev -x, -v -o FILE` wrote.", metavar="FILE")],
    output: Output,
    study: Study = "",
    member: Member = "",
    scene: Scene = "",
) -> None:
    """Read a file of toplev and write it as rows of the table `topdown`, whose source is toplev."""
    _write(str(file), _read(file), output, study, member, scene, platform="")


@topdown.command("record", cls=Command)
def record(
    command: Annotated[list[str], typer.Argument(help="What to run, after --.", metavar="COMMAND...")],
    toplev: Annotated[Path, typer.Option("--toplev", help="toplev.py of pmu-tools.", metavar="FILE")],
    output: Output,
    level: Annotated[int, typer.Option(min=1, max=3, help="The deepest level to read.")] = 2,
    python: Annotated[str, typer.Option("--python", help="The interpreter that toplev runs in.")] = sys.executable,
    study: Study = "",
    member: Member = "",
    scene: Scene = "",
) -> None:
    """Run a command below toplev, in another interpreter, and write the table."""
    from castmates.counters.topdown.toplev_run import run_toplev
    from castmates.machine.emulation import platform_here

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "toplev.csv"
        run_toplev(toplev, python, level, file, command)
        _write("toplev", _read(file), output, study, member, scene, platform_here())


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise CastmatesError(f"{file} cannot be read: {problem.strerror}; give a file of toplev.") from None


def _write(source: str, text: str, output: Path, study: str, member: str, scene: str, platform: str) -> None:
    from castmates.counters.topdown.toplev import read_toplev, rows
    from castmates.files import replace, writing
    from castmates.results.columns.block import TOPDOWN
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
