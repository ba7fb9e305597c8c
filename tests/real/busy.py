"""A process that keeps a CPU busy, and what it used according to the kernel."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

LOOP = """
import sys, threading
def work():
    while True:
        sum(range(999))
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=work, daemon=True).start()
work()
"""


@contextmanager
def busy(threads=1):
    command = [sys.executable, "-c", LOOP, str(threads)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def used_s(pid):
    """CPU time from the scheduler, of all threads, in seconds."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def children():
    """Who this process has started and not waited for."""
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())
