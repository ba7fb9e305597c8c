"""Tries what cannot be read from a file: perf, freezing, compilers, interpreters; each try has a time-out."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from castmates.linux import cgroups
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
