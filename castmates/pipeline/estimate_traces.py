"""The traces of a study -> its tables of what they come to."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from castmates.analysis.timeline.seen import Trace
from castmates.analysis.timeline.summary import rows_of
from castmates.files import make_folder
from castmates.results.columns.study import frame
from castmates.results.columns.trace_summary import TRACE_SUMMARY_TABLES
from castmates.results.folder import StudyFolder
from castmates.results.tables import write_table
from castmates.results.traces import traces_there
from castmates.timeline.tables import read

READ = ("tracks", "intervals", "instants", "samples")  # of a timeline; stacks say nothing of waits
MEASURED = "measured"


def write_tables(folder: StudyFolder, output: Path) -> None:
    """Read every trace that is there, one at a time, and write all tables into `output`: all of them, or none."""
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in TRACE_SUMMARY_TABLES}
    for trace in _traces(folder):
        for name, each in rows_of(trace).items():
            rows[name] += each
    make_folder(output)
    made = output / ".new-traces"
    shutil.rmtree(made, ignore_errors=True)  # of one that was killed
    made.mkdir()
    try:
        for name, columns in TRACE_SUMMARY_TABLES.items():
            write_table(frame(rows[name], columns), made / name)
        for file in sorted(made.iterdir()):
            file.replace(output / file.name)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _traces(folder: StudyFolder) -> Iterator[Trace]:
    """Those that were recorded whole; one that failed has a record without tables."""
    for name in traces_there(folder):
        timeline = read(folder.trace(name), *READ)
        if timeline.about.get("status", MEASURED) == MEASURED:
            tables = timeline.tracks, timeline.intervals, timeline.instants, timeline.samples
            yield Trace(*tables, timeline.about, name)
