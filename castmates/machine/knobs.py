"""The knobs that a study may set: where each lies, what its words mean, and what to do where a machine lacks it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.linux.host import SYSCTL
from castmates.linux.kernel_files import CPU_DIR, read_setting, read_text
from castmates.machine.journal import Change
from castmates.machine.topology import parse_cpu_list, read_topology
from castmates.study.cpus import format_cpu_list

IRQ_AFFINITY = "irq_affinity"
BALANCER = "irqbalance"
LEAVE_OUT = "or leave it out of 'machine.prepare'"


@dataclass(frozen=True, slots=True)
class Switch:
    """The files, all alike, in which some kernels keep a knob."""

    files: str  # below the root, as a pattern
    words: Mapping[str, str] | None = None  # a study's word -> the kernel's; None: they are the same


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing to be set for a block, wherever this kernel keeps it."""

    name: str
    switches: tuple[Switch, ...]  # the first that this machine has counts
    advice: str  # for a machine that has none

    def read(self, root: Path) -> dict[Path, str]:
        """Return every file of the knob and its value; empty where the machine lacks it."""
        return self._read(root)[1]

    def changes(self, root: Path, word: str) -> list[Change]:
        """List what has to be set so that the knob is as the study's word asks."""
        switch, values = self._read(root)
        if switch is None:
            raise CastmatesError(f"{self.name} cannot be set here: {self.advice}; {LEAVE_OUT}.")
        wanted = switch.words[word] if switch.words else word
        for file in values:
            offered = _offered(file)
            if offered and wanted not in offered:
                raise CastmatesError(
                    f"{self.name} cannot be '{word}' here: {file} offers only {', '.join(offered)}; take one of them, "
                    f"{LEAVE_OUT}."
                )
        return [Change(self.name, "file", str(file), was, wanted) for file, was in values.items() if was != wanted]

    def _read(self, root: Path) -> tuple[Switch | None, dict[Path, str]]:
        for switch in self.switches:
            values = {file: read_value(self.name, file) for file in sorted(root.glob(switch.files))}
            if values:
                return switch, values
        return None, {}


KNOBS = {
    knob.name: knob
    for knob in (
        Knob(
            "governor",
            (Switch(f"{CPU_DIR}/cpufreq/policy*/scaling_governor"),),
            "the kernel does not control the frequency (the host does, of a guest), so set it on the host or in the "
            "firmware",
        ),
        Knob(
            "turbo",
            (
                Switch(f"{CPU_DIR}/intel_pstate/no_turbo", {"on": "0", "off": "1"}),
                Switch(f"{CPU_DIR}/cpufreq/boost", {"on": "1", "off": "0"}),
            ),
            "the kernel shows no switch for it, so set it on the host or in the firmware",
        ),
        Knob(
            "thp",
            (Switch("sys/kernel/mm/transparent_hugepage/enabled"),),
            "this kernel has no transparent huge pages, so there is nothing to set",
        ),
        Knob(
            "numa_balancing",
            (Switch(f"{SYSCTL}/kernel/numa_balancing", {"on": "1", "off": "0"}),),
            "this kernel moves no pages between nodes by itself, so there is nothing to set",
        ),
        Knob(
            "nmi_watchdog",
            (Switch(f"{SYSCTL}/kernel/nmi_watchdog", {"on": "1", "off": "0"}),),
            "this kernel has no NMI watchdog, so there is nothing to set",
        ),
    )
}


def away(root: Path, cpus: Collection[int]) -> list[Change]:
    """List how interrupts have to be moved so that none comes to these CPUs, nor to siblings if others are left."""
    online = set(parse_cpu_list(read_text(root / CPU_DIR / "online") or ""))
    siblings = {cpu for processor in read_topology(root).cpus if processor.id in cpus for cpu in processor.siblings}
    quiet = set(cpus) | siblings if online - siblings - set(cpus) else set(cpus)
    others = online - quiet
    if not others:
        raise CastmatesError(
            f"{IRQ_AFFINITY} cannot be 'away' here: the block is on every CPU there is ({format_cpu_list(online)}), so "
            f"interrupts have nowhere to go; use fewer CPUs, {LEAVE_OUT}."
        )
    files = host.interrupts(root)
    if not files:
        raise CastmatesError(f"{IRQ_AFFINITY} cannot be set here: the kernel shows no interrupts; {LEAVE_OUT}.")
    changes = []
    for file in files:
        was = read_value(IRQ_AFFINITY, file)
        now = set(parse_cpu_list(was))
        if now & quiet:
            new = format_cpu_list((now & online) - quiet or others)
            changes.append(Change(IRQ_AFFINITY, "file", str(file), was, new))
    return changes


def read_value(knob: str, file: Path) -> str:
    """Read one file of a knob; an error is a sentence."""
    try:
        return read_setting(file)
    except OSError as error:
        raise CastmatesError(f"{knob} cannot be read: {file}: {error.strerror}; {LEAVE_OUT}.") from None


def balancer(root: Path) -> str | None:
    """Name the program that moves interrupts about by itself, if it runs."""
    return BALANCER if host.is_running(BALANCER, root) else None


def _offered(file: Path) -> list[str]:
    """List the words that the kernel would take, where it lists them."""
    beside = read_text(file.with_name("scaling_available_governors")) if file.name == "scaling_governor" else None
    text = beside if beside is not None else read_text(file) or ""
    return text.replace("[", " ").replace("]", " ").split() if beside is not None or "[" in text else []
