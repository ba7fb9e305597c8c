"""What tests do inside a guest: mount and look at resctrl, start processes that make threads when they are asked to."""

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from castmates.errors import CastmatesError
from tests.lab.kit.transcript import ROOT
from tests.waiting import wait_for

NUMBER = 4  # bytes


class Crowd:
    """A process with a thread, which makes another thread and a child with a thread when it is asked to.

    It is forked, because a new interpreter takes a second here.
    """

    def __init__(self):
        (asked, self._asks), (self._answers, answer) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _grow_when_asked(asked, answer)
            finally:
                os._exit(1)
        os.close(asked)
        os.close(answer)
        self.tids = [self.pid, *self._told(1)]

    def grow(self):
        os.write(self._asks, b"?")
        self.tids += self._told(3)

    def end(self):
        os.killpg(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self._asks)
        os.close(self._answers)

    def _told(self, numbers):
        return [int.from_bytes(os.read(self._answers, NUMBER), "little") for _ in range(numbers)]


def _grow_when_asked(asked, answer):
    """Tell the number of each thread, and of each child, that is made; close all other files, and with them locks."""
    os.setsid()
    for file in {int(entry.name) for entry in os.scandir("/proc/self/fd")} - {0, 1, 2, asked, answer}:
        with suppress(OSError):
            os.close(file)

    def tell(number):
        os.write(answer, number.to_bytes(NUMBER, "little"))

    def thread():
        told = threading.Event()
        threading.Thread(target=lambda: (tell(threading.get_native_id()), told.set(), time.sleep(600))).start()
        told.wait()

    thread()
    while os.read(asked, 1):
        thread()
        if os.fork() == 0:
            tell(os.getpid())
            thread()
            break
    time.sleep(600)


def forked(function):
    """Run a function in a new child: a new interpreter would take seconds to start."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1 if end.code else 0
            print(end.code)
        except CastmatesError as problem:
            print(f"castmates: {problem}")
        finally:
            sys.stdout.flush()
            os._exit(code)
    return child


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
