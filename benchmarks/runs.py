"""A run of a benchmark: its section of the page, its key figures, and what the machine was; kept as one JSON file."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.machine import CODE, ROOT, RUNS
from benchmarks.verdicts import Finding
from castmates.errors import CastmatesError
from castmates.files import make_folder, replace_text

FOLDER = ROOT / RUNS
VARIABLE = "CASTMATES_BENCHMARK_RUN"  # the file to which a benchmark writes its run
_NAMES_A_MODULE = re.compile(r"benchmarks\.(\w+)|\b(\w+)\.py\b|from benchmarks import ([\w, ]+)")


class Run(BaseModel):
    """What one run found."""

    model_config = ConfigDict(frozen=True)
    title: str
    command: str
    begun: datetime
    minutes: float
    commit: str
    protocol: int  # of the way of measuring: runs of another one are no repetitions
    machine: str
    cpus: int
    load: tuple[float, float]  # before and after
    steal: float | None
    findings: tuple[Finding, ...]
    section: tuple[str, ...]  # Markdown, by line
    code: str = ""  # digest of what was run
    raw: Mapping[str, bytes] = Field(default={}, exclude=True)  # tables that all of it can be computed from

    def head(self) -> str:
        """Command, time, commit, machine, and what else ran."""
        stolen = "not shown" if self.steal is None else f"{self.steal:.2%} of the CPUs' time"
        first = f"`{self.command}`, {self.begun:%Y-%m-%d %H:%M}, {self.commit}; {self.machine}."
        return (
            f"{first} It took {self.minutes:.1f} minutes; load average {self.load[0]:.1f} before and "
            f"{self.load[1]:.1f} after, on {self.cpus} CPUs; taken by the hypervisor meanwhile: {stolen}."
        )

    def markdown(self) -> str:
        """The section of the page."""
        return "\n".join([f"## {self.title}", "", self.head(), *self.section, *self._verdicts()])

    def _verdicts(self) -> list[str]:
        if not self.findings:
            return []
        rows = [[one.what, one.figures(), one.counted(), *one.judged()] for one in self.findings]
        header = ["found, with its 95 % interval", "", "over", "aim", "verdict"]
        return ["", *markdown_table(header, rows)]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def read(file: Path) -> Run:
    """Read a run that was written whole."""
    try:
        return Run.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as problem:
        first = str(problem).splitlines()[0]
        raise CastmatesError(f"{file}: no run of a benchmark can be read here ({first}); remove the file.") from None


def write(run: Run, file: Path) -> None:
    """Write a run, all or nothing."""
    replace_text(file, run.model_dump_json(indent=1) + "\n")


RAW = ("windows", "slices")  # of launches


def raw_file(file: Path, table: str) -> Path:
    """Where a raw table lies beside the run."""
    return file.with_suffix(f".{table}.parquet")


def write_raw(file: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write raw tables beside the run that is about to be written."""
    for name, table in tables.items():
        table.to_parquet(raw_file(file, name), compression="zstd", index=False)


def raw_of(file: Path) -> dict[str, bytes]:
    """The raw tables that lie beside a run."""
    return {name: raw_file(file, name).read_bytes() for name in RAW if raw_file(file, name).exists()}


def keep(run: Run, name: str, folder: Path = FOLDER) -> None:
    """Add a run to those that are kept of a command."""
    make_folder(folder / name)
    file = folder / name / f"{run.begun:%Y-%m-%dT%H%M%S}.json"
    for table, content in run.raw.items():
        raw_file(file, table).write_bytes(content)
    write(run, file)


def kept(name: str, folder: Path = FOLDER) -> list[Run]:
    """All runs of a command, the oldest first."""
    return sorted((read(file) for file in (folder / name).glob("*.json")), key=lambda run: run.begun)


def code_of(module: str, root: Path = ROOT) -> str:
    """Digest everything that a benchmark runs: Castmates, and of the benchmarks those that the module leads to."""
    digest = hashlib.sha256()
    for file in sorted({*_shared(root), *_leads_to(module, root / "benchmarks")}):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _shared(root: Path) -> Iterator[Path]:
    for place in CODE:
        if place != "benchmarks":
            files = (file for file in (root / place).rglob("*") if file.is_file())
            yield from (file for file in files if "__pycache__" not in file.parts and file.suffix != ".md")


def _leads_to(module: str, place: Path) -> set[Path]:
    """The files of a module and of all modules that it names, also as a process; C files go with their module."""
    found: set[Path] = set()
    open_ = {module}
    while open_:
        one = open_.pop()
        files = {file for file in place.glob(f"{one}.*") if file.suffix in (".py", ".c")} - found
        found |= files
        for file in files:
            for match in _NAMES_A_MODULE.finditer(file.read_text(encoding="utf-8")):
                open_ |= set(re.findall(r"\w+", " ".join(filter(None, match.groups()))))
    return found
