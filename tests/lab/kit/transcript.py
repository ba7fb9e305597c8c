"""Does things to resctrl and writes down what became of them: errno, the kernel's words, and what a file holds after.

mkdir g1                       -> OK       | ok
write g1/schemata 'L3:0=5\n'   -> EINVAL   | The mask 5 has non-consecutive 1-bits  =>     MB:0=100 /     L3:0=fff
"""

import errno
import os
import subprocess
from pathlib import Path

ROOT = Path("/sys/fs/resctrl")
MSR = 0x52445401  # of the emulated processor: makes readings fail, see processor/hooks.patch
UNAVAILABLE, ERROR = 1 << 62, 1 << 63
EVENTS = {"llc_occupancy": 1, "mbm_total_bytes": 2, "mbm_local_bytes": 3}


class Transcript:
    """Writes to standard output."""

    def __init__(self):
        self._status = "ok"
        self._names = {}  # numbers of processes -> what stands for them

    def call(self, pid, name):
        """Let a name stand for a number, which is another one each time."""
        self._names[str(pid)] = name

    def say(self, *words):
        text = " ".join(map(str, words))
        for pid, name in self._names.items():
            text = text.replace(pid, name)
        print(text, flush=True)

    def heading(self, title):
        self.say(f"\n=== {title}")

    def shell(self, command):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(command, shell=True, **pipes, check=False)
        self.say(f"$ {command}")
        if done.stdout:
            self.say(done.stdout.removesuffix("\n"))
        if done.returncode:
            self.say(f"[exit {done.returncode}]")
        return done.returncode

    def do(self, what, function, *arguments, tell_success=True):
        try:
            function(*arguments)
            outcome = "OK"
        except OSError as error:
            outcome = code(error)
        if outcome != "OK" or tell_success:
            self._tell(what, outcome)
        return outcome

    def make(self, path, tell_success=True):
        return self.do(f"mkdir {path}", os.mkdir, ROOT / path, tell_success=tell_success)

    def remove(self, path):
        return self.do(f"rmdir {path}", os.rmdir, ROOT / path)

    def write(self, path, text, show=None):
        """Write in one call; `show` is the file to be read afterwards."""
        data = text.encode()
        try:
            fd = os.open(ROOT / path, os.O_WRONLY)
            try:
                written = os.write(fd, data)
                outcome = "OK" if written == len(data) else f"OK({written}/{len(data)})"
            finally:
                os.close(fd)
        except OSError as error:
            outcome = code(error)
        self._tell(f"write {path} {data.decode('latin1')!r}", outcome, show)

    def write_each(self, path, *texts):
        """Write one text after the other, and read the file after each."""
        for text in texts:
            self.write(path, text, path)

    def _tell(self, what, outcome, show=None):
        status = read("info/last_cmd_status").rstrip("\n")
        told = status.replace("\n", " ; ")
        if status == self._status != "ok":
            told = "(last_cmd_status left as it was)"
        elif self._status != "ok" and status.startswith(f"{self._status}\n"):
            told = "(appended) " + status[len(self._status) + 1 :].replace("\n", " ; ")
        self._status = status
        what = what if len(what) < 120 else f"{what[:30]}...[{len(what)}]"
        after = "" if show is None else "  => " + " / ".join(read(show).rstrip("\n").split("\n"))
        self.say(f"{what:<52} -> {outcome:<8} | {told}{after}")


def read(path):
    try:
        return (ROOT / path).read_text()
    except OSError as error:
        return f"<{code(error)}>"


def in_one_line(path):
    return read(path).replace("\n", "|")


def code(error):
    return errno.errorcode.get(error.errno, str(error.errno))


def spoil(event, rmids, fault, cpu=0):
    """Let readings of an event fail from now on for these RMIDs, in the way of `fault`; 0 lets them succeed."""
    fd = os.open(f"/dev/cpu/{cpu}/msr", os.O_WRONLY)
    try:
        for rmid in rmids:
            os.pwrite(fd, (rmid | EVENTS[event] << 16 | fault).to_bytes(8, "little"), MSR)
    finally:
        os.close(fd)
