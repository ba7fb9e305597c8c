"""XProf's own converter, whose numbers TensorBoard's profile plug-in shows, in an environment apart from ours.

`python -m benchmarks.xprof_tools TRACE` prints what it shows of a trace: tests/data/xspace/tiny.xprof.json is of the
recorded one.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import say
from castmates.errors import CastmatesError
from castmates.files import cache_folder

VERSION = "2.24.2"
PACKAGES = (f"xprof=={VERSION}", f"tensorboard-plugin-profile=={VERSION}", "tensorboard==2.21.0")  # 410 MB
LISTED = 500  # operations that its table has at most: the longest
# It writes what it has found beside a trace: it is given a copy.
CONVERT = """
import json, shutil, sys, tempfile
from pathlib import Path
from xprof.convert.raw_to_tool_data import xspace_to_tool_data
for name in sys.argv[1:]:
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(name, Path(folder) / "host.xplane.pb")
        tools = ("framework_op_stats", "input_pipeline_analyzer", "memory_profile")
        found = {tool: json.loads(xspace_to_tool_data([copy], tool, {"use_saved_result": False})[0]) for tool in tools}
        print(json.dumps(found), flush=True)
"""


@dataclass(frozen=True)
class Shown:
    """What XProf shows of a trace; times in microseconds, milliseconds and bytes, as it prints them."""

    operations: Mapping[str, tuple[float, float]]  # by name: occurrences, total self-time (us)
    all_us: float  # self-times of all operations, those that are not listed too
    steps: Mapping[int, tuple[float, float]]  # by number: step time, and input (ms)
    peaks: Mapping[str, tuple[int, int]]  # by allocator: bytes in use at most in the trace, and since the job's start


def python() -> Path:
    """The interpreter of its environment, which is built where it is missing."""
    place = cache_folder().absolute() / "environments" / f"xprof-{VERSION}"
    inside, ready = place / "bin" / "python", place / "ready"
    if not ready.exists():
        say(f"building {place}: {', '.join(PACKAGES)}, 410 MB")
        _run([sys.executable, "-m", "venv", "--clear", str(place)])
        _run([str(inside), "-m", "pip", "install", "--quiet", *PACKAGES])
        ready.touch()
    return inside


def shown(traces: Sequence[Path]) -> list[Shown]:
    """What it shows of each of these traces."""
    lines = _run([str(python()), "-c", CONVERT, *map(str, traces)]).splitlines()
    if len(lines) != len(traces):
        raise CastmatesError(f"XProf converted {len(lines)} of {len(traces)} traces.")
    return [_shown(json.loads(line)) for line in lines]


def _shown(tools: Mapping[str, Any]) -> Shown:
    _, table = tools["framework_op_stats"]  # the first one has idle times too
    rows = [row for row in _rows(table) if row["host_or_device"] == "Host"]
    parts = [row["total_self_time"] / row["host_total_self_time_percent"] for row in rows[:1]]
    steps = [row for row in _rows(tools["input_pipeline_analyzer"][1]) if row["stepnum"]]
    memory = tools["memory_profile"]["memoryProfilePerAllocator"]
    return Shown(
        {row["operation"]: (row["occurrences"], row["total_self_time"]) for row in rows},
        parts[0] if parts else 0.0,
        {int(row["stepnum"].split()[-1]): (row["stepTimeMs"], row["infeedTimeMs"]) for row in steps},
        {name: _peaks(one["profileSummary"]) for name, one in memory.items()},
    )


def _rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]]


def _peaks(summary: Mapping[str, Any]) -> tuple[int, int]:
    return int(summary["peakStats"]["peakBytesInUse"]), int(summary["peakBytesUsageLifetime"])


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()[-1:] or ["it gave no reason"]
        raise CastmatesError(f"{' '.join(command[:4])} failed: {why[0]}")
    return done.stdout


if __name__ == "__main__":
    print(json.dumps(asdict(shown([Path(sys.argv[1])])[0]), indent=1, sort_keys=True))
