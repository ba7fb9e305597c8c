"""What a launch asks of Slurm: a node for itself, of its class, and another one where an attempt failed."""

import subprocess
from collections.abc import Callable, Collection

from castmates.study.machine_keys import SlurmKeys

USABLE = "--states=idle,mixed,allocated,completing"
Nodes = Callable[..., Collection[str]]


def nodes(*options: str) -> set[str]:
    """The nodes that `sinfo` shows with these options; none where it does not answer."""
    words = ["sinfo", "--noheader", "--Node", "--format=%N %f", *(option for option in options if option)]
    try:
        lines = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return set()
    return set(lines)


class Cluster:
    """Slurm as a process that submits jobs sees it."""

    def __init__(self, ask: Nodes = nodes) -> None:
        self._ask = ask
        self._outside: dict[str, set[str]] = {}  # by list of nodes

    def options(self, keys: SlurmKeys, refused: Collection[str] = (), failed: Collection[str] = ()) -> str:
        """Options of sbatch; constraint and partition are not among them, since Snakemake's plugin has words for both.

        `refused` are nodes of another class, which are never right. The job stays away from those on which it `failed`
        as long as there are others.
        """
        excluded = self._others_than(keys.nodelist) | set(refused)
        if failed and self._usable(keys) - excluded - set(failed):
            excluded |= set(failed)
        return " ".join(["--exclusive", *([f"--exclude={','.join(sorted(excluded))}"] if excluded else [])])

    def _others_than(self, wanted: str | None) -> set[str]:
        """The nodes that are not in a list: with --nodelist a job would want all of them at once."""
        if not wanted:
            return set()
        if wanted not in self._outside:
            self._outside[wanted] = self._named() - self._named(f"--nodes={wanted}")
        return self._outside[wanted]

    def _usable(self, keys: SlurmKeys) -> set[str]:
        """The nodes that could run it now, as far as names of features show; none with an expression of several."""
        return self._named(USABLE, f"--partition={keys.partition}" if keys.partition else "", feature=keys.constraint)

    def _named(self, *options: str, feature: str | None = None) -> set[str]:
        pairs = [line.split(maxsplit=1) for line in self._ask(*options)]
        return {node for node, features in pairs if feature in (None, *features.split(","))}
