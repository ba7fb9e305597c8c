"""How long texts of strace and ftrace with so many lines take to become tables, and how much memory that takes.

In the text of strace four threads call, and every eighth call is resumed on another line; in that of ftrace four
threads take turns on two CPUs, with wake-ups, system calls and marks between their switches.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.apart import apart, most_megabytes
from benchmarks.common import Report, run, say, scratch
from benchmarks.verdicts import Aim, Finding
from castmates.timeline import converting as index
from castmates.timeline import tables

LARGEST = 10_000_000
LONGEST, SHARE = 300.0, 2000.0  # seconds and megabytes that ten million lines may take
AT_ONCE = 100_000  # lines that are written together
CALLS = ("futex", "read", "write", "epoll_wait", "madvise", "getpid", "mmap", "openat")


def main() -> None:
    """Write texts of several sizes, and read each in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, nargs="+", default=[1_000_000, LARGEST])
    parser.add_argument("--read", type=Path, help="read this text, and nothing else: for the separate processes")
    options = parser.parse_args()
    if options.read:
        read(options.read)
        return
    report = Report("Traces of other programs", "timeline_import")
    report.text("Read by `castmates trace convert --format tables`, by one process.")
    for name, lines_of in WRITERS.items():
        rows = []
        for count in options.lines:
            say(f"{name}, {count} lines")
            with scratch() as folder:
                size = make(folder / "text", lines_of, count)
                seconds, megabytes, intervals = measured(folder / "text")
            each = f"{1e6 * seconds / count:.2f}"
            rows.append(
                [f"{count:,}", f"{size / 1e6:.0f}", f"{intervals:,.0f}", f"{seconds:.1f}", each, f"{megabytes:.0f}"]
            )
            if count == LARGEST:
                found(report, name, seconds, megabytes)
        report.text(f"{name}:")
        report.table(["lines", "file (MB)", "intervals", "seconds", "µs a line", "memory at most (MB)"], rows)
    report.print()


def found(report: Report, name: str, seconds: float, megabytes: float) -> None:
    """Hold the largest text against its aims."""
    report.found(
        Finding(what=f"10 million lines of {name}", value=seconds, unit="s", count=1, of="text", aim=Aim(most=LONGEST))
    )
    report.found(
        Finding(what=f"memory for those of {name}", value=megabytes, unit="MB", count=1, of="text", aim=Aim(most=SHARE))
    )


def make(file: Path, lines_of: Callable[[], Iterator[str]], count: int) -> int:
    """Write a text; its size in bytes."""
    lines, kept = lines_of(), []
    with file.open("w", encoding="utf-8") as out:
        for number in range(count):
            kept.append(next(lines))
            if len(kept) == AT_ONCE or number == count - 1:
                out.write("\n".join(kept) + "\n")
                kept.clear()
    return file.stat().st_size


def strace() -> Iterator[str]:
    """Lines of strace."""
    number = 0
    while True:
        thread, name = 1000 + number % 4, CALLS[number % len(CALLS)]
        at = f"{1_700_000_000 + number // 20_000}.{number % 20_000 * 50:06d}"
        if number % 8 == 7:
            yield f"{thread} {at} {name}(0x7f{number % 4096:010x}, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>"
            yield f"{thread} {at} <... {name} resumed>) = 0 <0.000001>"
        else:
            yield f"{thread} {at} {name}(0x7f{number % 4096:010x}, {number % 512}, 2, NULL) = {number % 97} <0.000009>"
        number += 1


def ftrace() -> Iterator[str]:
    """Lines of ftrace."""
    number = 0
    while True:
        cpu, turn = number % 2, number // 2
        one, other = 1000 + cpu * 2 + turn % 2, 1000 + cpu * 2 + (turn + 1) % 2
        start = number * 10_000
        who = f"        worker-{one:<6} [{cpu:03d}] d..2. "

        def at(more: int, start: int = start) -> str:
            t = start + more * 1000
            return f"{t // 10**9}.{t % 10**9:09d}"

        yield f"{who}{at(0)}: sys_enter: NR 202 (7f00, 80, 2, 0, 0, 0)"
        yield f"{who}{at(1)}: sys_exit: NR 202 = 0"
        yield f"{who}{at(2)}: tracing_mark_write: B|1000|step"
        yield f"{who}{at(3)}: tracing_mark_write: E|1000"
        yield f"{who}{at(4)}: sys_enter: NR 202 (7f00, 80, 2, 0, 0, 0)"
        yield f"{who}{at(5)}: sched_waking: comm=worker pid={other} prio=120 target_cpu={cpu:03d}"
        yield (
            f"{who}{at(6)}: sched_switch: prev_comm=worker prev_pid={one} prev_prio=120 prev_state=S ==> "
            f"next_comm=worker next_pid={other} next_prio=120"
        )
        yield f"        worker-{other:<6} [{cpu:03d}] ..... {at(7)}: sys_exit: NR 202 = 0"
        number += 1


def measured(file: Path) -> tuple[float, float, float]:
    """Seconds and megabytes of a process that reads the text, and the intervals that it finds."""
    seconds, megabytes, intervals = apart("benchmarks.timeline_import", "--read", str(file))
    return seconds, megabytes, intervals


def read(file: Path) -> None:
    """Read a text, write its tables, and print how long it took, how much memory, and the intervals."""
    begin = time.monotonic()
    timeline = index.read(file, index.importer_of(file))
    tables.write(timeline, file.with_name("tables"))
    print(time.monotonic() - begin, most_megabytes(), len(timeline.intervals))


WRITERS = {"strace": strace, "ftrace": ftrace}

if __name__ == "__main__":
    run(main)
