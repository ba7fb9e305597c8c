"""Tries what cannot be read from a file: perf, freezing, compilers, interpreters; each try has a time-out."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castmates.linux import cgroups, cpu_quota, memory_binding
from castmates.linux.host import cpuinfo, memory_bytes
from castmates.linux.tracing_rights import rights

TIMEOUT_S = 2.0
FREEZE_TIMEOUT_S = 0.5
TENSORFLOW_PYTHONS = ((3, 10), (3, 13))  # first and last release with TensorFlow wheels


def output_of(*command: str | Path) -> tuple[int, str, str] | None:
    """Run a short command; return its exit status, stdout and stderr, or None where it cannot run in time."""
    environment = {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def try_perf() -> dict[str, Any]:
    """Count an instruction and a software event for real; what perf answers is the only proof."""
    version = output_of("perf", "--version")
    if version is None or version[0] != 0:
        # Some distributions install a wrapper that only reports that this kernel's perf is missing.
        lines = (version[1] or version[2]).splitlines() if version else []
        return {"version": None, "why": lines[0] if lines else None, "hardware": None, "software": None, "scopes": None}
    return {
        "version": version[1],
        "why": None,
        "hardware": _try_event("instructions"),
        "software": _try_event("task-clock"),
        "scopes": {
            "cgroup": _try_event("task-clock", "-a", "-G", own) if (own := _own_group()) else "no control group",
            "thread": _try_event("task-clock"),
            "cpu": _try_event("task-clock", "-a"),
        },
    }


def try_tracing() -> dict[str, Any]:
    """Try what a trace of this user's own programs can hold."""
    found = rights()
    return {"level": found.level, "families": list(found.families()), "lacking": list(found.reasons)}


def counts_instructions() -> bool:
    """Try whether the processor's counters can be read, at least for our own programs."""
    return how_instructions_count() in ("counted", "user only")


def how_instructions_count() -> str:
    """Return how perf counts instructions: "counted", "user only", or its refusal in words."""
    return _try_event("instructions")


def _own_group() -> str | None:
    """Return the path of our own control group of version 2, as perf wants it."""
    return cgroups.memberships().get("")


def _try_event(event: str, *options: str) -> str:
    """Describe how perf counts the event: "counted", "user only", or its refusal in words."""
    answer = output_of("perf", "stat", "-x,", "-e", event, *options, "true")
    return parse_perf_stat(event, *answer) if answer else f"perf did not answer within {TIMEOUT_S:g} s"


def parse_perf_stat(event: str, status: int, stdout: str, stderr: str) -> str:
    """Read what `perf stat -x,` prints of one event; a hybrid machine prints a line for each core type."""
    rows = [line.split(",") for line in (stderr + "\n" + stdout).splitlines()]
    rows = [row for row in rows if len(row) > 2 and event in row[2]]
    counted = [row for row in rows if row[0].replace(".", "", 1).isdigit()]
    if status == 0 and counted:
        # perf falls back to user space by itself where perf_event_paranoid forbids the kernel.
        return "user only" if all(row[2].endswith((":u", "/u")) for row in counted) else "counted"
    if rows:
        return rows[0][0]
    complaints = (line for line in stderr.splitlines() if line.strip() not in ("", "Error:"))
    return next(complaints, f"perf ended with status {status}")


def try_freezing(group: Path) -> dict[str, Any]:
    """Freeze and thaw a sleeping child in a throw-away child of this cgroup v2 directory, then remove it."""
    child = group / f"castmates-doctor-{os.getpid()}"
    try:
        child.mkdir()
    except OSError as error:
        return {"works": False, "why": f"cannot make a child group: {error.strerror}"}
    sleeper = None
    try:
        sleeper = subprocess.Popen(["sleep", "10"], stdin=subprocess.DEVNULL)
        cgroups.move(child, sleeper.pid)
        frozen = cgroups.freeze(child, True, FREEZE_TIMEOUT_S)
        cgroups.freeze(child, False, FREEZE_TIMEOUT_S)
        why = None if frozen else f"not frozen within {FREEZE_TIMEOUT_S:g} s"
    except OSError as error:
        frozen, why = False, f"cannot use a child group: {error.strerror}"
    finally:
        if sleeper is not None:
            sleeper.kill()
            sleeper.wait()
        left = _remove_group(child)
    return {"works": frozen and left is None, "why": why or left}


def _remove_group(group: Path) -> str | None:
    """Remove the group, which the kernel allows only a moment after its last process was reaped."""
    deadline = time.monotonic() + FREEZE_TIMEOUT_S
    while True:
        try:
            group.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                return f"cannot remove {group}: {error.strerror}"
            time.sleep(0.002)
        else:
            return None


def find_compiler() -> str | None:
    """Return the first line of the C compiler's version, if one works."""
    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        answer = output_of(*name.split(), "--version")
        if answer and answer[0] == 0 and answer[1]:
            return answer[1].splitlines()[0]
    return None


def find_pqos() -> str | None:
    """Return where pqos is; it is not started, because merely starting it makes groups for all classes."""
    return shutil.which("pqos")


def find_tensorflow_python() -> str | None:
    """Return the version of an interpreter that has TensorFlow wheels, this one if it will do."""
    first, last = TENSORFLOW_PYTHONS
    if first <= sys.version_info[:2] <= last:
        return ".".join(map(str, sys.version_info[:3]))
    for minor in range(last[1], first[1] - 1, -1):
        # Version managers put names on the path that do not run: only an answer counts.
        answer = output_of(f"python3.{minor}", "-ISc", "import platform; print(platform.python_version())")
        if answer and answer[0] == 0:
            return answer[1]
    return None


def detect_virtualisation() -> dict[str, str | None]:
    """Ask systemd, where it is, which hypervisor and which container we are in ("none" for neither)."""
    kinds: dict[str, str | None] = {}
    for kind in ("vm", "container"):
        answer = output_of("systemd-detect-virt", f"--{kind}")
        kinds[kind] = answer[1] or None if answer else None
    return kinds


def git_state(project: Path) -> dict[str, Any] | None:
    """Return the commit of the project's checkout, whether tracked files differ from it, and its name for people."""
    if not (project / ".git").exists():
        return None
    git = ("git", "--no-optional-locks", "-C", project)
    head = output_of(*git, "rev-parse", "HEAD")
    if head is None or head[0] != 0:
        return None
    changes = output_of(*git, "status", "--porcelain", "--untracked-files=no")
    described = output_of(*git, "describe", "--tags", "--always", "--dirty", "--match", "v[0-9]*")
    return {
        "commit": head[1],
        "modified": bool(changes[1]) if changes and changes[0] == 0 else None,
        "described": described[1] if described and described[0] == 0 else head[1],
    }


def our_git_state() -> dict[str, Any] | None:
    """Return the state of the checkout that this package is run from; None where it is installed from a wheel."""
    return git_state(Path(__file__).parents[2])


# The word `rdt=` on the kernel's command line: what it switches on and off, and how it has to be changed.

KEY = "rdt="
OFF = "!"
PLACE = "the kernel's command line"


@dataclass(frozen=True, slots=True)
class Switches:
    """The features of resctrl that the command line names, by the kernel's words for them: l3cat, cmt, mba …"""

    on: frozenset[str]
    off: frozenset[str]

    def state(self, word: str) -> bool | None:
        """Return whether a feature is switched on or off; None where that is left to the kernel.

        The kernel lets "on" win, in whatever order and word the two stand.
        """
        return True if word in self.on else False if word in self.off else None


def switches(command_line: str | None) -> Switches:
    """Read every `rdt=`: `!x` is off, `x` is on."""
    items = _items(_words(command_line))
    return Switches(
        frozenset(item for item in items if not item.startswith(OFF)),
        frozenset(item.removeprefix(OFF) for item in items if item.startswith(OFF)),
    )


def change(command_line: str | None, allow: Collection[str], force: Iterable[str] = ()) -> str:
    """Describe in one line how to let these features be, and how to switch on those that the kernel switches off."""
    there = _words(command_line)
    forced = list(dict.fromkeys(force))
    kept = [item for item in _items(there) if item.removeprefix(OFF) not in {*allow, *forced} or item in forced]
    items = list(dict.fromkeys([*kept, *forced]))
    old, new = " ".join(there), KEY + ",".join(items)
    if not items:
        return f"remove {old} from {PLACE} and restart"
    return f"put {new} in place of {old} on {PLACE} and restart" if there else f"add {new} to {PLACE} and restart"


def _words(command_line: str | None) -> list[str]:
    words = (command_line or "").split()
    ours = words[: words.index("--")] if "--" in words else words  # what follows is meant for init
    return [word for word in ours if word.startswith(KEY)]


def _items(words: Iterable[str]) -> list[str]:
    return [item for word in words for item in word.removeprefix(KEY).split(",") if item]


# Whether this machine can give out CPU time in shares.


def no_quota() -> str:
    """Why it cannot, in a clause; "" where it can."""
    return cpu_quota.lacking()


# Whether this machine is the lab's: a real kernel on an emulated processor.

LAB = "RDT-lab"  # in the processor's name


def platform_here(root: Path = Path("/")) -> str:
    """Return where figures that are taken here come from: `measured`, or `emulated` in the lab."""
    return "emulated" if LAB in cpuinfo(root).get("model name", "") else "measured"


# How much memory this process and its children may use, and how much of it nobody uses now.


def usable_memory(root: Path = Path("/")) -> int | None:
    """Return the machine's memory in bytes, or what our control groups (a container's, a cluster job's) leave of it."""
    total, limit = memory_bytes("MemTotal", root), limited_memory(root)
    return total if limit is None else limit


def limited_memory(root: Path = Path("/")) -> int | None:
    """Return what our control groups allow, in bytes; None where they allow all that there is."""
    total = memory_bytes("MemTotal", root)
    least = min((limit.bytes for limit in memory_binding.limits(root)), default=None)
    return None if least is None or (total is not None and least >= total) else least


def free_memory(root: Path = Path("/")) -> int | None:
    """Return how much could be had now before the kernel would have to kill somebody; None where it is not known."""
    free = memory_bytes("MemAvailable", root)
    within = [limit.bytes - limit.taken for limit in memory_binding.limits(root) if limit.taken is not None]
    return max(0, min([*within, *([] if free is None else [free])])) if within or free is not None else None
