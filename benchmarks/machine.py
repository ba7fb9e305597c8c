"""What the head of a benchmark's section names: processor, kernel, commit, and what else ran meanwhile."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from castmates.linux import host
from castmates.machine.facts import cpu_model
from castmates.machine.probes import detect_virtualisation, output_of
from castmates.machine.topology import read_topology
from castmates.study.cpus import format_cpu_list

ROOT = Path(__file__).parents[1]
FLAGS = {"avx2": "avx2", "avx512f": "avx512f", "amx_tile": "amx", "hypervisor": "hypervisor"}  # the kernel's: ours
RUNS = "benchmarks/runs"
# What a benchmark measures, or measures with; a study, a page or a stored run changes no figure.
CODE = ("castmates", "scripts", "workflow", "config", "envs", "benchmarks")
STOLEN = 7  # the column of /proc/stat


@dataclass(frozen=True)
class Commit:
    """The commit that is checked out, and whether code differs from it; nothing is known without git."""

    name: str = ""
    modified: bool = False

    def words(self) -> str:
        """As the head names it."""
        return f"commit {self.name or 'unknown'}{' + uncommitted changes' if self.modified else ''}"


@dataclass(frozen=True)
class Moment:
    """What the machine shows of others at one moment."""

    load: float
    ticks: tuple[int, ...]

    @classmethod
    def now(cls) -> "Moment":
        """Look."""
        return cls(os.getloadavg()[0], tuple(host.total_ticks()[: STOLEN + 1]))

    def stolen_until(self, later: "Moment") -> float | None:
        """The share of the CPUs' time that the hypervisor took until a later moment; None where it is not shown."""
        spent = sum(later.ticks) - sum(self.ticks)
        return (later.ticks[STOLEN] - self.ticks[STOLEN]) / spent if spent and len(later.ticks) > STOLEN else None


def commit(root: Path = ROOT) -> Commit:
    """Ask git."""
    git = ("git", "--no-optional-locks", "-C", root)
    head = output_of(*git, "rev-parse", "--short", "HEAD")
    changes = output_of(*git, "status", "--porcelain", "--", *CODE, f":(exclude){RUNS}")
    if head is None or head[0] != 0 or changes is None:
        return Commit()
    return Commit(head[1], bool(changes[1]))


def machine(root: Path = Path("/")) -> str:
    """The machine in one line."""
    topology, found = read_topology(root), detect_virtualisation() if root == Path("/") else {}
    kind = next((word for key in ("vm", "container") if (word := found.get(key)) and word != "none"), None)
    flags = [name for flag, name in FLAGS.items() if flag in (host.cpu_flags(root) or ())]
    virtual = kind or "hypervisor" in flags
    where = f"virtual ({kind or 'a hypervisor'})" if virtual else "not virtual, as far as can be seen"
    return (
        f"{cpu_model(root) or platform.machine()} ({', '.join(flags) or 'none of ' + ', '.join(FLAGS.values())}), "
        f"{len(topology.cores())} cores usable (CPUs {format_cpu_list(topology.allowed)}), Linux {host.release(root)}, "
        f"{where}"
    )
