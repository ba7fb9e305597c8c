"""Arguments and options that several commands of `castmates` take, and what a shell completes them to."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from castmates import shipped
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.study.written import InPercent


def _default() -> Path:
    from castmates.results.named import default_study

    return default_study()


def _study_file(context: typer.Context, study: Path) -> Path:
    from castmates.results.find import study_file

    return study if context.params.get("replay") else study_file(study)


def _cores(cores: str) -> str:
    if cores != "all" and not (cores.isdecimal() and int(cores) > 0):
        raise CastmatesError(f"--cores is '{cores}', expected a number of CPUs, or all.")
    return cores


def complete_study(incomplete: str) -> Iterator[str]:
    """The study files of the folder, and the folders of results."""
    from castmates.results.find import OWN
    from castmates.results.folder import RESULTS

    files = [file for pattern in (*OWN, f"{RESULTS}/[!.]*") for file in sorted(Path().glob(pattern))]
    yield from (name for name in map(str, files) if name.startswith(incomplete))


def complete_workloads(incomplete: str) -> Iterator[str]:
    """The names of the catalogue, after the last comma of what is written."""
    from castmates.workloads.written import names

    before, comma, last = incomplete.rpartition(",")
    yield from (f"{before}{comma}{name}" for name in names(CATALOGUE) if name.startswith(last))


HELP = "The study file, or the folder results/<study>; config/config.yaml or study.yaml if left out."
NEEDED = "The study file, or the folder results/<study>."
CATALOGUE = shipped.catalogue()
# What has results, wherever they lie.
Studied = Annotated[
    Path, typer.Argument(help=NEEDED, metavar="STUDY", show_default=False, autocompletion=complete_study)
]
StudiedOrDefault = Annotated[
    Path,
    typer.Argument(
        help=HELP, metavar="STUDY", show_default=False, autocompletion=complete_study, default_factory=_default
    ),
]
# What is planned, measured or changed: the command gets the study's file.
StudyFile = Annotated[
    Path,
    typer.Argument(
        help=HELP,
        metavar="STUDY",
        show_default=False,
        autocompletion=complete_study,
        default_factory=_default,
        callback=_study_file,
    ),
]
TextOrJson = Literal["text", "json"]
Format = Annotated[TextOrJson, typer.Option("--format", metavar="FORMAT", help="text, or json for scripts.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FOLDER", help="Also write tables, figures and page into this folder."),
]
Cores = Annotated[
    str,
    typer.Option(
        "--cores", "-j", help="How many CPUs Snakemake may use: a number, or all.", metavar="N", callback=_cores
    ),
]
Launches = Annotated[
    int | None, typer.Option(min=1, max=10_000, metavar="N", help="More launches of each program than the study has.")
]
TracedMix = Annotated[
    str,
    typer.Argument(help="The mix that was traced, or words that only one has; MIX@PARTITION under one.", metavar="MIX"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only what came out.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Snakemake's own messages, with each command.")]
OnlyWrite = Annotated[bool, typer.Option("--only-write", help="Write the study file and measure nothing.")]
Beside = Annotated[
    str, typer.Option(metavar="NAMES", help="Its antagonists, separated by commas.", autocompletion=complete_workloads)
]
Margin = Annotated[
    str,
    typer.Option(
        metavar="N%",
        show_default=False,
        help="The largest difference that counts as none, such as 2%; the study's if left out.",
    ),
]
LIMIT = "What the lead may lose, such as 3%; the study's own limit if left out."


def loudness(quiet: bool, verbose: bool) -> list[str]:
    """Snakemake's options for how much is shown."""
    return [*(["--quiet", "progress"] if quiet else []), *(["--printshellcmds"] if verbose else [])]


def limit_of(limit: str) -> float | None:
    """The limit in per cent; None where it was left out."""
    from castmates.study.written import LOSS

    return _share("--limit", limit, LOSS)


def margin_of(margin: str) -> float | None:
    """The margin as a fraction; None where it was left out."""
    from castmates.study.written import PART

    return _share("--margin", margin, PART)


def _share(option: str, written: str, form: "InPercent") -> float | None:
    try:
        return form.read(written) if written else None
    except ValueError as problem:
        raise CastmatesError(f"{option} is '{written}', expected {problem}.") from None


def enough(launches: int | None, fewest: int, mode: str) -> None:
    """Refuse fewer launches than this mode of a command takes."""
    if launches is not None and launches < fewest:
        raise CastmatesError(f"--launches is {launches}, but with {mode} it is at least {fewest}.")
