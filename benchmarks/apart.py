"""A step of a benchmark in a process of its own, so that its memory is its own too."""

import resource
import subprocess
import sys

from castmates.errors import CastmatesError


def apart(module: str, *words: str) -> list[float]:
    """The numbers that another process prints, which runs this benchmark with these words."""
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise CastmatesError(f"{module} {' '.join(words)} failed: {why}")
    return [float(word) for word in done.stdout.split()]


def most_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
