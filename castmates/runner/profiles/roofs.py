"""Measures what the lead's CPUs can do at most: the roofs under which its operations are drawn.

Two kernels of ours stand still beside the members, and run alone on the lead's CPUs before its first trace: one streams
through four times the last-level cache, the other multiplies and adds in registers.
"""

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from castmates.machine.topology import Topology
from castmates.runner.processes.launch import Start
from castmates.runner.processes.starts import helper_start
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import Member

MEMORY, COMPUTE = "roof:memory", "roof:compute"  # no workload may have a colon in its name
TIMES = 4  # the last-level cache, that is streamed through
SETTLE, SECONDS, TRIES = 0.3, 0.2, 6  # the best of so many stretches counts: others only ever take some away
MIB = 1 << 20
CHAINS = 12  # of the kernel `avx`: a unit is a step of each, a multiplication and an addition in every place
_WIDTH = re.compile(r"(\d+)-bit vectors")
BITS_OF_A_DOUBLE = 64


@dataclass(frozen=True)
class Roofs:
    """What is started, and what its units are."""

    starts: list[Start]
    flops_per_unit: float  # of numbers of 64 bits
    bytes: int = 0  # of memory
    why_not: str = ""  # in a sentence, why one is not measured


def roofs_of(lead: Member, topology: Topology, native: Path, scratch: Path) -> Roofs:
    """Return what measures the roofs of a lead's CPUs; less where the machine does not show what it takes."""
    starts, why = [], []
    sizes = [llc.bytes for llc in topology.llcs if set(llc.cpus) & set(lead.cpus)]
    threads = str(len(lead.cpus))
    known = [size for size in sizes if size]
    streamed = 0
    if known and len(known) == len(sizes):
        streamed = TIMES * sum(known)
        command = [str(native / "stream"), "--bytes", str(streamed), "--threads", threads]
        starts.append(_on(lead, helper_start(MEMORY, lead.cpus[0], command, scratch)))
    else:
        why.append("the kernel does not show how large the last-level cache is")
    flops = _flops_per_unit(native / "avx")
    if flops:
        command = [str(native / "avx"), "--threads", threads]
        starts.append(_on(lead, helper_start(COMPUTE, lead.cpus[0], command, scratch)))
    else:
        why.append("the kernel avx does not show how wide its vectors are")
    return Roofs(starts, flops, streamed, "; ".join(why))


def _on(lead: Member, start: Start) -> Start:
    """The same on all CPUs, and in the memory, of the lead."""
    return replace(start, cpus=lead.cpus, nodes=lead.nodes)


def _flops_per_unit(program: Path) -> float:
    """What a unit of the kernel comes to as it was built here; 0 where it does not show that."""
    try:
        words = subprocess.run([str(program), "--help"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return 0.0
    found = _WIDTH.search(words)
    return 2.0 * CHAINS * int(found[1]) / BITS_OF_A_DOUBLE if found else 0.0


def measure(stage: Stage, roofs: Roofs) -> dict[str, Any]:
    """Let each run alone for a moment: GB and 10^9 operations in a second, None where that is not known."""
    units = {start.name: _rate(stage, start.name) for start in roofs.starts}
    memory, compute = units.get(MEMORY), units.get(COMPUTE)
    return {
        "memory_gbs": None if memory is None else round(memory * MIB / 1e9, 3),
        "compute_gflops_f64": None if compute is None else round(compute * roofs.flops_per_unit / 1e9, 3),
        "why_not": roofs.why_not,
    }


def _rate(stage: Stage, name: str) -> float | None:
    """The most units in a second of one that runs alone."""
    stage.switch([name])
    stage.sleep_until(stage.now_ns() + int(SETTLE * 1e9))
    best = None
    for _ in range(TRIES):
        stage.forget_beats()
        stage.sleep_until(stage.now_ns() + int(SECONDS * 1e9))
        records = stage.cast[name].records
        if len(records) > 1 and records[-1][0] > records[0][0]:
            rate = (records[-1][1] - records[0][1]) / (records[-1][0] - records[0][0]) * 1e9
            best = rate if best is None else max(best, rate)
    stage.switch([])
    return best
