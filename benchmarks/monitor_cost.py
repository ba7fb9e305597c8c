"""What watching costs: eight groups' occupancy and bandwidth, ten times a second, through the driver."""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import verdicts
from benchmarks.common import Report, run
from benchmarks.rdt_places import PLAIN, REPETITIONS, RESCTRL, NoTasks, PlainTree, costs
from castmates.errors import CastmatesError
from castmates.machine.journal import Journal
from castmates.machine.resctrl_state import POINT
from castmates.protocols import Held
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.monitor import RATE, ResctrlMonitor
from castmates.rdt.resctrl.mounting import Mounted
from castmates.rdt.resctrl.tree import KernelTree

PORTIONS = (3, 9)  # seconds
GROUPS = 8


def main() -> None:
    """Measure on every place and print the table; or do the work on one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=[PLAIN, RESCTRL], help="do the work there, and print what it took as JSON")
    parser.add_argument("--portions", type=int, default=PORTIONS[1], help="seconds")
    arguments = parser.parse_args()
    if arguments.on:
        print(json.dumps(work(arguments.on, arguments.portions)))
    else:
        report()


def work(place: str, seconds: int) -> dict[str, float]:
    """Watch for so long; return what the monitor's thread used, by second."""
    with tempfile.TemporaryDirectory(prefix="castmates-cost-") as name:
        folder = Path(name)
        tree = PlainTree(folder / "tree") if place == PLAIN else KernelTree(POINT)
        entries = ResctrlJournal(Journal(folder), tree.root, "a benchmark")
        monitor = ResctrlMonitor(Mounted(tree, NoTasks(), entries, dict.fromkeys(range(4), 0)))
        try:
            monitor.attach({f"member@{number}": Held(1, [number % 4]) for number in range(GROUPS)})
            if missing := monitor.groups.missing:
                why = next(iter(missing.values()))
                raise CastmatesError(f"{len(missing)} of {GROUPS} groups cannot be watched: {why}")
            monitor.start()
            time.sleep(seconds)
            samples = monitor.stop()
        finally:
            monitor.close()
    whole = monitor.open_ns / 1e9
    return {"cpu_ms": monitor.cpu_ns / 1e6 / whole, "looks": monitor.looks / whole, "samples": len(samples) / whole}


def report() -> None:
    """Print the page's section."""
    page = Report("What watching costs", "monitor_cost")
    page.text(
        f"{GROUPS} groups with three events each, read {RATE:g} times a second by the monitor's thread, for"
        f" {PORTIONS[1]} s in a process, of which there are {REPETITIONS} on this machine; system calls are the"
        f" difference between {PORTIONS[1]} s and {PORTIONS[0]} s under strace. The lab emulates its processor in"
        " software: its CPU time is the lab's alone. What reading costs the members (an interrupt of a CPU of their"
        " cache for each event, in the kernel) is in neither figure."
    )
    rows = []
    for cost in costs("monitor_cost", PORTIONS):
        calls = "not counted: no strace" if cost.calls is None else f"{cost.calls.total()}"
        kinds = ", ".join(f"{count} {name}" for name, count in (cost.calls or {}).items() if count)
        means = [statistics.mean(said[key] for said in cost.said) for key in ("cpu_ms", "looks", "samples")]
        rows.append([cost.place, *(f"{one:.1f}" for one in means), calls, kinds])
        if cost.place.startswith(PLAIN):
            used = [said["cpu_ms"] for said in cost.said]
            page.found(verdicts.mean("CPU time of the monitor's thread a second", used, "ms", "processes"))
    header = ["on", "ms of CPU time a second", "looks a second", "samples a second", "system calls a second", "which"]
    page.table(header, rows)
    page.print()


if __name__ == "__main__":
    run(main)
