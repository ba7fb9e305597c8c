"""The traces of a study -> its tables of what they show."""

import sys
from collections.abc import Iterator
from pathlib import Path

from castmates.analysis.timeline.seen import Trace
from castmates.errors import CastmatesError
from castmates.pipeline.estimates import Estimates, write
from castmates.results.columns.registry import written_by
from castmates.results.folder import StudyFolder
from castmates.timeline.model import extent
from castmates.timeline.queries.database import of_study, readable
from castmates.timeline.tables import read

RULE = "estimate_traces"
READ = ("tracks", "intervals", "instants", "samples")  # of a timeline; stacks say nothing of waits


def write_tables(folder: StudyFolder, output: Path) -> None:
    """Read every trace that is there, one at a time, and write all tables into `output`: all of them, or none."""
    write(Estimates(RULE, {"timelines": _traces(folder)}), written_by(RULE), output)


def _traces(folder: StudyFolder) -> Iterator[Trace]:
    """Those that can be read; what failed or is damaged is named, and stops nobody: the page names it too."""
    found, left_out = readable(of_study(folder))
    for each in found:
        try:
            timeline = read(each.path, *READ)
            tables = timeline.tracks, timeline.intervals, timeline.instants, timeline.samples
            yield Trace(*tables, timeline.about, each.name, extent(each.path)[0])
        except CastmatesError as problem:  # beyond the heads of its files
            left_out.append(f"The trace of {each.name} cannot be read: {problem}")
    for sentence in left_out:
        print(sentence, file=sys.stderr)
