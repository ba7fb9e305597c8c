"""A Python job that pays what its neighbour costs before each heartbeat: `python truth_job.py MODULE ARGUMENTS`."""

import mmap
import os
import runpy
import struct
import sys
import time
from pathlib import Path

from castmates.workloads.heartbeat import Writer

FRESH_NS = 4_000_000
PAGE = struct.Struct("QdQQQ")  # struct tax_page of castmates/workloads/native/tax.h


def main() -> None:
    """Let each heartbeat of the job pay first."""
    with Path(os.environ["CASTMATES_TAX"]).open("r+b") as file:
        page = memoryview(mmap.mmap(file.fileno(), PAGE.size))
    words, numbers = page.cast("Q"), page.cast("d")
    beat, until, owed = Writer.beat, 0, 0.0

    def paid_beat(self: Writer, units: int = 1) -> None:
        nonlocal until, owed
        words[2] = os.getpid()
        loss = numbers[1] if time.monotonic_ns() - words[0] < FRESH_NS else 0.0
        now = time.process_time_ns()  # last, as in tax.h
        if until and not words[4]:
            owed += (now - until) * loss / (1 - loss)
        begin = now
        while now - begin < owed:
            now = time.process_time_ns()
        if owed > 0:
            owed -= now - begin
            words[3] += now - begin
        until = now
        beat(self, units)

    Writer.beat = paid_beat  # type: ignore[method-assign]
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
