"""Runs Snakemake as a child that never outlives us: a request to end us ends its jobs and it, in good order."""

import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

import castmates
from castmates import shipped
from castmates.errors import CastmatesError
from castmates.extras import SWEEP, refuse_lacking
from castmates.linux.end_with_parent import end_with_parent
from castmates.pipeline import ending_sweep
from castmates.pipeline.closing import SHOWN_ELSEWHERE
from castmates.protocols import Say

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OWN_WORKFLOWS = ("Snakefile", "workflow/Snakefile")  # where Snakemake looks
OVER = b"over"  # the last word to the process that outlives us


def sweep(
    study_file: Path,
    cores: str,
    say: Say,
    launches: int | None = None,
    options: Sequence[str] = (),
    shows_result: bool = True,
) -> None:
    """Let Snakemake measure what is missing of a study and write its page; it ends with the result, if wanted."""
    refuse_lacking(SWEEP)
    chosen = [f"study={study_file}", *([] if launches is None else [f"launches={launches}"])]
    words = [*workflow_words(), "--cores", cores, *options, "--config", *chosen]
    say(shlex.join(["snakemake", *words]))
    # No Python of a sweep takes a module from the folder in which it runs.
    environment = os.environ | {"PYTHONSAFEPATH": "1"} | ({} if shows_result else {SHOWN_ELSEWHERE: "1"})
    if code := run([sys.executable, "-P", "-m", "snakemake", *words], say, environment):
        raise CastmatesError(f"the sweep of {study_file} ended with status {code}; the messages above show why.")


def workflow_words() -> list[str]:
    """Which workflow and which profile Snakemake takes: a folder's own, or else those that come with us."""
    snakefile = next((Path(name) for name in OWN_WORKFLOWS if Path(name).is_file()), shipped.snakefile())
    beside = (folder / "profiles" / "default" for folder in (Path(), snakefile.parent))
    profile = next((str(each) for each in beside if each.is_dir()), "none")
    return ["--snakefile", str(snakefile), "--workflow-profile", profile]


def run(words: list[str], say: Say, environment: Mapping[str, str] | None = None) -> int:
    """Run it to its end and return its status; when a signal comes, end it, and exit with 128 and its number."""
    with _Signals() as signals:
        # Where the process that outlives us is killed too, Snakemake finishes the launch that runs, and ends.
        running = subprocess.Popen(
            words, start_new_session=True, preexec_fn=end_with_parent(signal.SIGTERM), env=environment
        )
        with _outlived(running):
            number = signals.wait(running)
            if number is None:
                return running.returncode
            _try_to(say, f"{number.name} came; ending the sweep in good order, which may take a minute.")
            ending_sweep.end(running.pid, lambda seconds: signals.ended(running, seconds))
    sys.exit(128 + number)


@contextlib.contextmanager
def _outlived(running: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Have a process that ends the sweep in good order where this one is killed."""
    watching = subprocess.Popen(
        [sys.executable, "-P", "-m", "castmates.pipeline.outliving_command", str(running.pid)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
        env=os.environ | {"PYTHONPATH": str(Path(castmates.__file__).parents[1])},
    )  # fmt: skip
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):  # somebody killed it
            watching.communicate(OVER)


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
