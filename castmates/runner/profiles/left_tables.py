"""The tables that a profile launch leaves, but that of calls: rows are collected trace by trace, then written."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from castmates.files import replace
from castmates.results.columns.contract import Columns
from castmates.results.columns.operations import DEVICE_CALLS, MEMORY, PROFILED_STEPS, TRACED_STAGES
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.primitives import PRIMITIVES
from castmates.results.columns.ranges import OPERATION_RANGES, PROFILE_RANGES
from castmates.runner.profiles import ranges, tables
from castmates.runner.profiles.primitives import primitive_rows
from castmates.runner.profiles.taken import Profiled
from castmates.study.profile_launches import is_logged
from castmates.traces.onednn import Log
from castmates.traces.reading import Found

Rows = list[dict[str, Any]]
ALWAYS: dict[str, Columns] = {
    "profiled_steps": PROFILED_STEPS,
    "memory": MEMORY,
    "traced_stages": TRACED_STAGES,
    "device_calls": DEVICE_CALLS,
}
OF_RANGES: dict[str, Columns] = {"profile_ranges": PROFILE_RANGES, "operation_ranges": OPERATION_RANGES}
OF_LOGS: dict[str, Columns] = {"primitives": PRIMITIVES}


class LeftTables:
    """Rows by table."""

    def __init__(self, outcome: Profiled) -> None:
        self._log = ranges.log_of(outcome)
        self._annotated = list(self._log.ranges()) if self._log else []
        self._logged = is_logged(outcome.launch)
        self._rows: dict[str, Rows] = {name: [] for name in ALWAYS | OF_RANGES | OF_LOGS}

    def add(self, aligned: tables.Aligned, found: Found) -> None:
        """Add what a trace shows."""
        self._extend("profiled_steps", tables.steps(aligned))
        self._extend("memory", tables.memory_rows(aligned, found.memory))
        self._extend("traced_stages", tables.stage_rows(aligned, found.stages))
        self._extend("device_calls", tables.device_rows(aligned, found.devices))
        self._extend("profile_ranges", ranges.near(aligned, self._annotated))
        self._extend("operation_ranges", ranges.joined(aligned, self._annotated))

    def add_log(self, aligned: tables.Aligned, log: Log) -> Rows:
        """Add what oneDNN logged during a trace, and return these rows."""
        rows = list(primitive_rows(aligned, log.executions))
        self._extend("primitives", rows)
        return rows

    def write(self, folder: Path) -> None:
        """Write each table; nothing is left of another launch's that this one has not."""
        if self._log is not None:
            self._rows["profile_ranges"] = ranges.fitting(self._rows["profile_ranges"], self._log)
        there = ALWAYS | (OF_RANGES if self._log else {}) | (OF_LOGS if self._logged else {})
        for name, rows in self._rows.items():
            file = folder / f"{name}.parquet"
            if name not in there:
                file.unlink(missing_ok=True)
                continue
            writing: Callable[[Path], None] = partial(write_rows, rows, there[name])
            replace(file, writing)

    def _extend(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        self._rows[name].extend(rows)
