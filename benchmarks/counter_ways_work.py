"""Work that is counted in all ways at once, in a separate process: pages are touched, two threads spin."""

import json
import mmap
import resource
import sys
import threading
import time
from contextlib import ExitStack

from castmates.inside import Counters, open_counters, papi

EVENTS = ("page-faults", "task-clock")
LAUNCH = b"\0" * 1_000_000


def main(pages: int, seconds: float) -> None:
    """Do it and print the result of each way, as JSON."""
    begin, over = threading.Event(), threading.Event()

    def other() -> None:
        begin.wait()
        work(pages - pages // 2, seconds)
        over.set()

    threading.Thread(target=other, daemon=True).start()  # started before anything is counted
    with ExitStack() as closing:
        opened: dict[str, Counters] = {}
        for way in ("perf", *([] if papi.why_not() else ["papi"])):
            opened[way] = open_counters(EVENTS, way)
            closing.callback(opened[way].close)
        before, used = {way: one.read() for way, one in opened.items()}, usage()
        begin.set()
        work(pages // 2, seconds)
        over.wait()
        found = {"getrusage": dict(zip(EVENTS, (b - a for a, b in zip(used, usage(), strict=True)), strict=True))}
        for way, one in opened.items():
            name = f"{way} (one thread)" if one.misses else way
            pairs = zip(before[way], one.read(), strict=True)
            counts = [b - a for a, b in pairs if a is not None and b is not None]
            found[name] = dict(zip(one.names, counts, strict=True))
    print(json.dumps(found))


def work(pages: int, seconds: float) -> None:
    """Touch so many fresh pages and be busy for so long, outside of Python's lock for the most part."""
    import zlib

    with mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for place in range(0, pages * mmap.PAGESIZE, mmap.PAGESIZE):
            memory[place] = 1
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        zlib.crc32(LAUNCH)


def usage() -> tuple[int, int]:
    """Faults and ns on a CPU, as the kernel reports them to the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt + used.ru_majflt, time.process_time_ns()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
