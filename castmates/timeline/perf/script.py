"""What `perf script` prints of a recording, bounded in time."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

# Reading the symbols of TensorFlow alone takes perf ten seconds and 0.9 GB; by lines of source it would take minutes.
SLOWEST = 300.0  # seconds for perf to print everything
NO_PERF = "there is no perf here to read what it recorded"


@contextmanager
def _printed(file: Path, fields: str, slowest: float, *options: str) -> Iterator[tuple[IO[str], Callable[[], str]]]:
    """What `perf script` prints of the file, and a function that waits for its end and returns what went wrong."""
    command = ["perf", "script", "--force", "--no-inline", "--ns", "--show-lost-events", *options]
    command += ["-F", fields, "-i", str(file)]
    # With this one perf would ask the network for symbols.
    asked = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
    late = threading.Event()
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, text=True, errors="replace",
            env=asked | {"LC_ALL": "C"},
        )  # fmt: skip

        def give_up() -> None:
            late.set()
            process.kill()

        def end() -> str:
            if process.wait() == 0:
                return ""
            if late.is_set():
                return f"perf took longer than {slowest:g} s to print the samples; the rest of them is missing"
            complaints.seek(0)
            said = [line.strip() for line in complaints if line.strip()]
            return f"perf cannot read {file.name}: {said[-1].rstrip('.') if said else 'it does not say why'}"

        timer = threading.Timer(slowest, give_up)
        timer.start()
        try:
            assert process.stdout is not None
            yield process.stdout, end
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def taken(file: Path, fields: str, slowest: float, take: Callable[[Iterable[str]], None], *options: str) -> str:
    """Have the lines that `perf script` prints of the file taken; return what went wrong."""
    try:
        with _printed(file, fields, slowest, *options) as (lines, end):
            take(lines)
            return end()
    except FileNotFoundError:
        return NO_PERF


def about(name: str, file: Path, events: Mapping[str, int], lost: int, why: str) -> dict[str, Any]:
    """What the record of a trace has of a source that perf sampled, whose clock is that of the timeline."""
    size = file.stat().st_size if file.is_file() else 0
    return {"name": name, "events": dict(events), "lost": lost, "bytes": size, "alignment_ns": 0, "reason": why}
