"""How a trace launch samples its members' loads: perf's command line. Not tried on real hardware."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from castmates.runner.tracing.stacks import LARGEST

NO_SOURCE = "this processor samples no loads: the kernel shows no PEBS, IBS or SPE"
LOADS_HZ = 997
PERIOD = 100_000  # SPE takes one of so many instructions


def load_arguments(
    source: Mapping[str, str],
    pids: Iterable[int],
    output: Path,
    hz: int = LOADS_HZ,
    largest: int = LARGEST,
    user_only: bool = False,
) -> list[str]:
    """perf's command line, which samples until it gets SIGINT; `source` is the fact `latency_source` of the machine."""
    events = source["events"] + ("u" if user_only else "")
    how_often = ["--count", str(PERIOD)] if source["source"] == "SPE" else ["--freq", str(hz)]
    return [
        "perf", "record", "--quiet", "--clockid", "CLOCK_MONOTONIC", "--sample-cpu", "--data", "--weight",
        "--event", events, *how_often, "--no-buildid-cache", "--max-size", f"{largest}B",
        "--pid", ",".join(map(str, pids)), "--output", str(output),
    ]  # fmt: skip
