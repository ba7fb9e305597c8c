"""What a launch asks of Slurm: a node for itself, of its class, and another one where an attempt failed."""

import subprocess
import time
from collections.abc import Callable, Collection, Mapping

from castmates.errors import CastmatesError
from castmates.study.machine_keys import SlurmKeys

USABLE = "--states=idle,mixed,allocated,completing"
PAUSE = 60.0  # seconds until a Slurm that did not answer is asked again: there may be thousands of launches
Nodes = Callable[..., Collection[str]]


def nodes(*options: str) -> set[str]:
    """The nodes that `sinfo` shows with these options, with partition and features; none where it does not answer."""
    words = ["sinfo", "--noheader", "--Node", "--format=%N %P %f", *(option for option in options if option)]
    try:
        lines = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return set()
    return set(lines)


class Cluster:
    """Slurm as a process that submits jobs sees it."""

    def __init__(self, ask: Nodes = nodes, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._outside: dict[str, set[str]] = {}  # by list of nodes
        self._ask_again = clock()

    def options(self, keys: SlurmKeys, refused: Collection[str] = (), failed: Collection[str] = ()) -> str:
        """Options of sbatch; constraint and partition are not among them, since Snakemake's plugin has words for both.

        `keys` has them as they are in effect. `refused` are nodes that are never right: of another class, or left out.
        The job stays away from those on which it `failed` as long as there are others.
        """
        excluded = self._others_than(keys.nodelist) | set(refused)
        if failed and self._usable(keys) - excluded - set(failed):
            excluded |= set(failed)
        return " ".join(["--exclusive", *([f"--exclude={','.join(sorted(excluded))}"] if excluded else [])])

    def refuse_unknown(self, machine: str, nodelist: str | None) -> None:
        """Refuse the list of a class where the cluster has none of its nodes."""
        if nodelist and not self._named(f"--nodes={nodelist}") and self._named():
            raise CastmatesError(
                f"'machines.{machine}.slurm.nodelist' is '{nodelist}', and `sinfo` shows none of these nodes; write "
                "names that `sinfo --Node` shows."
            )

    def _others_than(self, wanted: str | None) -> set[str]:
        """The nodes that are not in a list: with --nodelist a job would want all of them at once."""
        if not wanted:
            return set()
        if wanted not in self._outside and self._clock() >= self._ask_again:
            listed, every = self._named(f"--nodes={wanted}"), self._named()
            if listed and every:
                self._outside[wanted] = every - listed
            else:
                self._ask_again = self._clock() + PAUSE
        return self._outside.get(wanted, set())

    def _usable(self, keys: SlurmKeys) -> set[str]:
        """The nodes that could run it now, as far as names of features show; none with an expression of several."""
        if keys.partition:
            return self._named(USABLE, f"--partition={keys.partition}", feature=keys.constraint)
        return self._named(USABLE, feature=keys.constraint, default=True)

    def _named(self, *options: str, feature: str | None = None, default: bool = False) -> set[str]:
        """The names of nodes: all, those with a feature, those of the default partition if there is one."""
        rows = [line.split(maxsplit=2) for line in self._ask(*options)]
        if default:  # sinfo marks it
            rows = [row for row in rows if row[1].endswith("*")] or rows
        return {node for node, _, features in rows if feature in (None, *features.split(","))}


def in_effect(keys: SlurmKeys, of_launches: Mapping[str, object], of_jobs: Mapping[str, object]) -> SlurmKeys:
    """What Slurm gets: the profile's words for launches, else those of the class, else the profile's for all jobs."""
    update = {
        key: _word(of_launches.get(name)) or getattr(keys, key) or _word(of_jobs.get(name))
        for key, name in {"constraint": "constraint", "partition": "slurm_partition"}.items()
    }
    return keys.model_copy(update=update)


def _word(value: object) -> str | None:
    """A word of a profile: Snakemake keeps it as it was written, maybe in quotes."""
    raw = getattr(value, "raw", value)
    return str(raw).strip("'\"") if raw is not None else None
