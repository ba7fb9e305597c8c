"""A trace of PyTorch with many events, made for `benchmarks.trace_scale`: as PyTorch writes it, but for its times.

All calls are on one thread, in steps of a thousand: half of them in modules that a mark is around, half in gradients.
"""

import gzip
from pathlib import Path

from castmates.traces.chrome import GRADIENT, MODULE
from castmates.workloads.jobs.tracing import STEP

IN_A_STEP, LAYERS = 1000, 50
BASE = 1_790_857_026_000_000_000
HEADER = """{
  "schemaVersion": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": %d,
  "traceEvents": [
  {
    "ph": "M",
    "name": "thread_name",
    "ts": 0.000,
    "pid": 1,
    "tid": 1,
    "args": {
      "name": "thread 1 (python)"
    }
  }"""
MARK = """,
  {
    "ph": "X",
    "cat": "user_annotation",
    "name": "%s",
    "pid": 1,
    "tid": 1,
    "ts": %d.000,
    "dur": %d.000
    ,
    "args": {
      "External id": 1,"Record function id": 0, "Ev Idx": 2
    }
  }"""
CALL = """,
  {
    "ph": "X",
    "cat": "cpu_op",
    "name": "%s",
    "pid": 1,
    "tid": 1,
    "ts": %d.125,
    "dur": %d.250
    ,
    "args": {
      "External id": 29697,"Record function id": 0, "Sequence number": %d, "Fwd thread id": %d, "Ev Idx": 123456
    }
  }"""


def make(file: Path, events: int) -> int:
    """Write a trace; its size in bytes."""
    with gzip.open(file, "wt", compresslevel=1) as out:
        out.write(HEADER % BASE)
        for step in range(max(1, events // IN_A_STEP)):
            out.write("".join(_step(step)))
        out.write('\n  ],\n  "traceName": "made"\n}\n')
    return file.stat().st_size


def _step(step: int) -> list[str]:
    """A step's events: layers forward and then backward, five calls in each within a sixth."""
    begin, length = 4_000_000_000 + 20_000 * step, 10
    found = [MARK % (f"{STEP}#{step}", begin, 20_000)]
    for layer in range(LAYERS):
        at = begin + 100 * layer
        found.append(MARK % (f"{MODULE}layers/{layer}/first", at, 90))
        found += _calls("aten::linear", "aten::addmm", at, length, LAYERS * step + layer, 0)
    for layer in reversed(range(LAYERS)):
        at = begin + 10_000 + 100 * (LAYERS - layer)
        found += _calls(f"{GRADIENT}AddmmBackward0", "aten::mm", at, length, LAYERS * step + layer, 1)
    return found


def _calls(outer: str, inner: str, at: int, length: int, sequence: int, thread: int) -> list[str]:
    rows = [CALL % (outer, at + 1, 80, sequence, thread)]
    inner_calls = (IN_A_STEP - LAYERS - 1) // (2 * LAYERS) - 1
    return rows + [CALL % (inner, at + 2 + 8 * place, length - 4, sequence, 0) for place in range(inner_calls)]
