"""The launches whose traces begin with the first record -> the study's table of first epochs."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from castmates.analysis.operations.first_epoch import first_epoch
from castmates.analysis.operations.per_trace import per_launch
from castmates.results.folder import StudyFolder
from castmates.results.profiles import read_profile, read_record


def first_epoch_table(folder: StudyFolder, paths: Sequence[str]) -> pd.DataFrame:
    """Read the launches at these paths, one at a time; an empty table without any."""
    profiles = (read_profile(folder.profile(path)) for path in paths)
    traces = per_launch((each.calls, each.steps) for each in profiles)
    about = [row for path in paths for row in _about(read_record(folder, path))]
    return pd.DataFrame() if traces is None else first_epoch(traces, pd.DataFrame(about))


def _about(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What is known of each trace of a launch that was read."""
    names = ("scene", "round", "epoch", "pair", "storage_bytes")
    for trace in record["traces"]:
        if not trace["reason"]:
            yield {"company": record["company"], "block": record["block"], **{name: trace[name] for name in names}}
