"""Where the drivers' own cost is measured: on a folder of plain files, and on the real resctrl of the lab's kernels."""

import json
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import say, scratch
from benchmarks.machine import ROOT
from castmates.errors import CastmatesError
from castmates.machine.resctrl_state import POINT
from castmates.protocols import Held
from castmates.rdt.resctrl.foreign import Place
from castmates.rdt.resctrl.tree import KernelTree
from tests.lab.kit import build
from tests.lab.kit.boot import Shape, boot

PLAIN, RESCTRL = "plain files", "resctrl"
REPETITIONS = 5  # processes on this machine, which are the sample; the lab's milliseconds mean nothing
LONGEST = 300.0  # seconds for one place
FILES = {  # of every group, as the lab's processor has them
    "schemata": "MB:0=100\nL3:0=fff\n",
    "size": "MB:0=100\nL3:0=18874368\n",
    "tasks": "",
    "mode": "shareable\n",
    "mon_data/mon_L3_00/llc_occupancy": "1048576\n",
    "mon_data/mon_L3_00/mbm_total_bytes": "1048576\n",
    "mon_data/mon_L3_00/mbm_local_bytes": "1048576\n",
}
INFO = {
    "info/last_cmd_status": "ok\n",
    "info/L3/cbm_mask": "fff\n",
    "info/L3/min_cbm_bits": "1\n",
    "info/L3/num_closids": "16\n",
    "info/L3/shareable_bits": "c00\n",
    "info/MB/bandwidth_gran": "10\n",
    "info/MB/delay_linear": "1\n",
    "info/MB/min_bandwidth": "10\n",
    "info/MB/num_closids": "16\n",
    "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n",
    "info/L3_MON/num_rmids": "32\n",
}


class PlainTree(KernelTree):
    """Files with the content of resctrl's, and no effect."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._fill("", FILES | INFO)
        (root / "mon_groups").mkdir()

    def make(self, path: str) -> None:
        """Make a group with its files."""
        self._fill(path, FILES)

    def remove(self, path: str) -> None:
        """Remove a group with its files."""
        shutil.rmtree(self.root / path)

    def _fill(self, path: str, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            file = self.root / path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


class NoTasks:
    """Members without a thread: what groups cost is measured, not what processes do."""

    shows_places = True

    def threads(self, held: Collection[Held]) -> Mapping[int, list[int]]:
        """List no tasks."""
        return {each.pid: [] for each in held}

    def place(self, tid: int) -> Place | None:  # noqa: ARG002
        """Know no tasks."""
        return None


@dataclass(frozen=True)
class Cost:
    """What each repetition of a benchmark's own part gave, and the system calls of one portion of it."""

    place: str
    said: Sequence[Mapping[str, float]]  # by repetition
    calls: Counter[str] | None  # None without strace


def costs(module: str, portions: tuple[int, int]) -> Iterator[Cost]:
    """Run `python -m benchmarks.MODULE --on PLACE --portions N` on each place, also under strace."""
    with scratch() as folder:
        say(PLAIN)
        subprocess.run(
            ["bash", "-c", _script(module, PLAIN, portions, folder, REPETITIONS)], cwd=ROOT, check=True, timeout=LONGEST
        )
        yield _cost(f"{PLAIN} on this machine", folder, portions)
    lab = build.built()
    if lab is None:
        say("without the lab, which is not built: `make lab` builds it")
        return
    for series, kernel in lab.kernels.items():
        with scratch() as folder:
            say(f"the lab, Linux {kernel.version}")
            command = f"cd {shlex.quote(str(ROOT))}; mount -t resctrl resctrl {POINT}; "
            command += _script(module, RESCTRL, portions, Path("/share"), 1)
            done = boot(lab, Shape(series, series), command, folder, LONGEST)
            if done.code != 0:
                raise CastmatesError(f"the lab's Linux {kernel.version} did not finish: {done.told}")
            yield _cost(f"the lab (emulated), Linux {series}", folder, portions)


def _script(module: str, place: str, portions: tuple[int, int], folder: Path, times: int) -> str:
    """Some times undisturbed, then twice under strace."""
    work = f"{shlex.quote(sys.executable)} -m benchmarks.{module} --on {shlex.quote(place)} --portions"
    lines = ["set -e", *(f"{work} {portions[1]} > {folder}/said.{n}" for n in range(times))]
    if shutil.which("strace"):
        lines += [f"strace -f -c -U calls,name -o {folder}/calls.{n} {work} {n} > /dev/null" for n in portions]
    return "\n".join(lines)


def _cost(place: str, folder: Path, portions: tuple[int, int]) -> Cost:
    said = [json.loads(file.read_text()) for file in sorted(folder.glob("said.*"))]
    if not (folder / f"calls.{portions[0]}").exists():
        return Cost(place, said, None)
    few, many = (_counts(folder / f"calls.{number}") for number in portions)
    more = portions[1] - portions[0]
    return Cost(place, said, Counter({name: round((many[name] - few[name]) / more) for name in many}))


def _counts(file: Path) -> Counter[str]:
    rows = (line.split() for line in file.read_text().splitlines())
    return Counter({row[1]: int(row[0]) for row in rows if len(row) == 2 and row[0].isdecimal() and row[1] != "total"})
