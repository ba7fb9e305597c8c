"""The cost of a change of partition: all schemata written, and read back three times, through the driver."""

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from time import perf_counter_ns

from benchmarks import verdicts
from benchmarks.common import Report, run
from benchmarks.rdt_places import PLAIN, REPETITIONS, RESCTRL, NoTasks, PlainTree, costs
from castmates.machine.journal import Journal
from castmates.machine.resctrl_state import POINT
from castmates.protocols import Held
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.mounting import Mounted
from castmates.rdt.resctrl.tree import KernelTree
from castmates.study.spec import REST, Share

PORTIONS = (50, 150)  # scenes
MEMBERS = ("lead@0", "stream@1", "chase@2")


def main() -> None:
    """Measure on every place and print the table; or do the work on one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=[PLAIN, RESCTRL], help="do the work there, and print what it took as JSON")
    parser.add_argument("--portions", type=int, default=PORTIONS[1], help="scenes")
    arguments = parser.parse_args()
    if arguments.on:
        print(json.dumps(work(arguments.on, arguments.portions)))
    else:
        report()


def work(place: str, scenes: int) -> dict[str, float]:
    """Give out other shares again and again; return the milliseconds of a scene."""
    with tempfile.TemporaryDirectory(prefix="castmates-cost-") as name:
        folder = Path(name)
        tree = PlainTree(folder / "tree") if place == PLAIN else KernelTree(POINT)
        entries = ResctrlJournal(Journal(folder), tree.root, "a benchmark")
        allocator = ResctrlAllocator(Mounted(tree, NoTasks(), entries, dict.fromkeys(range(4), 0), say=lambda _: None))
        try:
            allocator.prepare({member: Held(1, [cpu]) for cpu, member in enumerate(MEMBERS)})
            took = [scene(allocator, number) for number in range(scenes)]
        finally:
            allocator.restore()
    ordered = sorted(took)
    return {"median": statistics.median(ordered), "p95": ordered[int(0.95 * len(ordered))]}


def scene(allocator: ResctrlAllocator, number: int) -> float:
    """Return the milliseconds of one scene: shares given and proved, and looked at at both edges of a window."""
    lead = 0xFFF ^ ((1 << (1 + number % 10)) - 1)  # masks of three digits, which plain files need
    shares = [Share(member=MEMBERS[0], ways=lead)]
    shares += [Share(member=name, ways=0x800, bandwidth=100) for name in (*MEMBERS[1:], REST)]
    begin = perf_counter_ns()
    allocator.apply(shares)
    allocator.read_back()
    allocator.read_back()
    return (perf_counter_ns() - begin) / 1e6


def report() -> None:
    """Print the page's section."""
    page = Report("What a change of partition costs", "schemata")
    page.text(
        f"The schemata of {len(MEMBERS)} members and of the default group: each written in one write and read back at"
        f" once, and read back again at both edges of a window. {PORTIONS[1]} scenes in a process, of which there are"
        f" {REPETITIONS} on this machine; system calls are the difference between {PORTIONS[1]} scenes and"
        f" {PORTIONS[0]} under strace, Python's own included. The lab emulates its processor in software: its"
        " milliseconds are the lab's alone, and mean nothing for a real machine. The number of system calls holds"
        " there too."
    )
    rows = []
    for cost in costs("schemata", PORTIONS):
        calls = "not counted: no strace" if cost.calls is None else f"{cost.calls.total()}"
        kinds = ", ".join(f"{count} {name}" for name, count in (cost.calls or {}).items() if count)
        both = [statistics.mean(said[key] for said in cost.said) for key in ("median", "p95")]
        rows.append([cost.place, *(f"{one:.2f}" for one in both), calls, kinds])
        if cost.place.startswith(PLAIN):
            page.found(verdicts.mean("ms a scene, median", [said["median"] for said in cost.said], "ms", "processes"))
    page.table(["on", "ms a scene, median", "95 % of scenes within", "system calls a scene", "which"], rows)
    page.print()


if __name__ == "__main__":
    run(main)
