"""Runs Snakemake as a child that never outlives us: a request to end us ends its jobs and it, in good order."""

import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.linux.end_with_parent import end_with_parent
from castmates.linux.processes import read_table
from castmates.pipeline.closing import SHOWN_ELSEWHERE
from castmates.protocols import Say

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What its whole group gets, and how long it may take. The first is what Ctrl-C sends: a block then puts the machine
# right, and Snakemake waits for it; at SIGTERM it would wait for blocks to be finished, and shells would not wait.
ESCALATION = ((signal.SIGINT, 60.0), (signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))
# Where no job runs: Snakemake, still reading its files, then ends at once, and at Ctrl-C it would end in a traceback.
AT_ONCE = (signal.SIGTERM, 10.0)
OWN_WORKFLOWS = ("Snakefile", "workflow/Snakefile")  # where Snakemake looks
LAST_S = 5.0  # that the others of the group may take after Snakemake; where orphans are not reaped they never are gone


def sweep(
    study_file: Path,
    cores: str,
    say: Say,
    blocks: int | None = None,
    options: Sequence[str] = (),
    shows_result: bool = True,
) -> None:
    """Let Snakemake measure what is missing of a study and write its page; it ends with the result, if wanted."""
    chosen = [f"study={study_file}", *([] if blocks is None else [f"blocks={blocks}"])]
    words = [*workflow_words(), "--cores", cores, *options, "--config", *chosen]
    say(shlex.join(["snakemake", *words]))
    environment = os.environ | ({} if shows_result else {SHOWN_ELSEWHERE: "1"})
    if code := run([sys.executable, "-m", "snakemake", *words], say, environment):
        raise CastmatesError(
            f"the sweep of {study_file} ended with status {code}; Snakemake's messages above show why, and the same "
            "command goes on where it stopped."
        )


def workflow_words() -> list[str]:
    """Which workflow Snakemake runs: a folder's own, which it finds by itself, or else the one that comes with us."""
    if any(Path(name).is_file() for name in OWN_WORKFLOWS):
        return []
    return ["--snakefile", str(shipped.snakefile())]  # beside which it finds the profile


def run(words: list[str], say: Say, environment: Mapping[str, str] | None = None) -> int:
    """Run it to its end and return its status; when a signal comes, end it, and exit with 128 and its number."""
    with _Signals() as signals:
        # At our death Snakemake finishes the block that runs, and ends.
        running = subprocess.Popen(
            words, start_new_session=True, preexec_fn=end_with_parent(signal.SIGTERM), env=environment
        )
        number = signals.wait(running)
        if number is None:
            return running.returncode
        _try_to(say, f"{number.name} came; ending the sweep in good order, which may take a minute.")
        _end(running, signals)
        _try_to(say, "The sweep was ended before it was done; the same command goes on where it stopped.")
    sys.exit(128 + number)


def _end(running: "subprocess.Popen[bytes]", signals: "_Signals") -> None:
    """Ask its whole group to end, and insist; further requests have to wait."""
    for number, patience in ESCALATION if _has_jobs(running) else (AT_ONCE, *ESCALATION):
        _signal(running, number)
        if signals.ended(running, patience):
            break
    deadline = time.monotonic() + LAST_S
    while _signal(running, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    _signal(running, signal.SIGKILL)


def _has_jobs(running: "subprocess.Popen[bytes]") -> bool:
    """Whether another process is in its group."""
    return any(each.group == running.pid and each.pid != running.pid and each.alive for each in read_table().values())


def _signal(running: "subprocess.Popen[bytes]", number: int) -> bool:
    """Send its group a signal; whether there was anybody. The dead leader still names its group."""
    try:
        os.killpg(running.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class _Signals:
    """Signals that came, as they come, through a pipe: nothing is lost, without polling."""

    def __enter__(self) -> "_Signals":
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._woken_before = signal.set_wakeup_fd(self._write)
        # What is ignored stays so, `nohup` means it; but the child must not ignore it too: that is how we end it.
        self._ours = {number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN}
        self._before = {number: signal.signal(number, _note) for number in (*SIGNALS, signal.SIGCHLD)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken_before)
        os.close(self._read)
        os.close(self._write)

    def wait(self, running: "subprocess.Popen[bytes]") -> signal.Signals | None:
        """Until it has ended (None), or we are asked to end."""
        while running.poll() is None:
            if asked := self._ours & self._next(None):
                return signal.Signals(min(asked))
        return None

    def ended(self, running: "subprocess.Popen[bytes]", seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        deadline = time.monotonic() + seconds
        while running.poll() is None and (left := deadline - time.monotonic()) > 0:
            self._next(left)
        return running.returncode is not None

    def _next(self, seconds: float | None) -> set[int]:
        """The signals that come next; none if none comes within so many seconds."""
        return {*os.read(self._read, 512)} if select.select([self._read], [], [], seconds)[0] else set()


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal's number is in the pipe."""


def _try_to(say: Say, words: str) -> None:
    with contextlib.suppress(OSError):  # the listener may be gone
        say(words)
