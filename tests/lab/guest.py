"""What tests do inside a guest: mount and look at resctrl, start processes that make threads when they are asked to."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.lab.kit.transcript import ROOT
from tests.waiting import wait_for

# Makes a thread, and a child that makes one, for each line that it is sent; prints their numbers.
CROWD = """
import os, subprocess, sys, threading, time
def thread():
    ready = threading.Event()
    def live():
        print(threading.get_native_id(), flush=True)
        ready.set()
        time.sleep(600)
    threading.Thread(target=live, daemon=True).start()
    ready.wait()
thread()
for line in sys.stdin:
    thread()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        thread()
        time.sleep(600)
"""


class Crowd:
    """A process with a thread, which makes another thread and a child with a thread when it is asked to."""

    def __init__(self):
        command = [sys.executable, "-S", "-E", "-c", CROWD]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, **pipes, start_new_session=True)
        self.pid = self._process.pid
        self.tids = [self.pid, *self._told(1)]

    def grow(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.tids += self._told(3)

    def end(self):
        os.killpg(self.pid, 9)
        self._process.wait()

    def _told(self, lines):
        return [int(self._process.stdout.readline()) for _ in range(lines)]


def is_mounted():
    return " resctrl " in Path("/proc/mounts").read_text()


def mount(options=""):
    subprocess.run(["mount", "-t", "resctrl", *(["-o", options] if options else []), "resctrl", ROOT], check=True)


def unmount():
    """Whoever still holds a file there is given a moment."""
    wait_for(lambda: subprocess.run(["umount", ROOT], check=False).returncode == 0, "resctrl is unmounted")


def groups():
    """Every group with its schemata and its mode; "" is the default one."""
    found = {}
    for path in ["", *sorted(entry.name for entry in os.scandir(ROOT) if entry.is_dir())]:
        if path not in ("info", "mon_data", "mon_groups"):
            found[path] = {name: text_of(path, name) for name in ("schemata", "mode", "cpus_list")}
            inner = ROOT / path / "mon_groups"
            found[path]["watched"] = sorted(entry.name for entry in inner.iterdir()) if inner.is_dir() else []
    return found


def text_of(*parts):
    file = ROOT.joinpath(*parts)
    return file.read_text().strip() if file.exists() else None


def group_of(tid):
    """The control group of a thread, as the kernel reports it."""
    lines = Path(f"/proc/{tid}/cpu_resctrl_groups").read_text().splitlines()
    return lines[0].removeprefix("res:").strip("/")


@contextmanager
def busy(cpu):
    """Let a process run on this CPU all the time."""
    process = subprocess.Popen(["taskset", "-c", str(cpu), "bash", "-c", "while :; do :; done"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
