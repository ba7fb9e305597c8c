"""The knobs that a study may set: where each lies, what its words mean, and what to do where a machine lacks it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import governor, host
from castmates.linux.host import SYSCTL
from castmates.linux.kernel_files import CPU_DIR, read_text
from castmates.machine import quieting
from castmates.machine.journal import Change
from castmates.machine.quieting import IRQ_AFFINITY, LEAVE_OUT, PREFETCHERS, UNCORE, WORKQUEUES, read_value

BALANCER = "irqbalance"
# What a driver offers, beside the file that takes one of it.
OFFERS = {
    "scaling_governor": "scaling_available_governors",
    "energy_performance_preference": "energy_performance_available_preferences",
}
# Before all others, and so put back last: no other preference can be written under the governor `performance`, and
# the governor puts back the one that it found.
FIRST = ("epp",)


@dataclass(frozen=True, slots=True)
class Switch:
    """The files, all alike, in which some kernels keep a knob."""

    files: str  # below the root, as a pattern
    words: Mapping[str, str] | None = None  # a study's word -> the kernel's; None: they are the same


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing to be set for a launch, wherever this kernel keeps it."""

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
        return [_change(self.name, file, was, wanted) for file, was in values.items() if was != wanted]

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
            governor.KIND,
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
        Knob(
            "epp",
            (Switch(f"{CPU_DIR}/cpufreq/policy*/energy_performance_preference"),),
            "the kernel's frequency driver takes no preference (intel_pstate and amd_pstate in active mode do)",
        ),
    )
}


def changes_of(knob: str, root: Path, word: str, cpus: Collection[int]) -> list[Change]:
    """List what has to be set for any knob that lies in files or registers."""
    if knob == IRQ_AFFINITY:
        return quieting.interrupts_away(root, cpus)
    if knob == WORKQUEUES:
        return quieting.workqueues_away(root, cpus)
    if knob == UNCORE:
        return quieting.uncore_fixed(root, word)
    if knob == PREFETCHERS:
        return quieting.prefetchers(root, word, cpus)
    return KNOBS[knob].changes(root, word)


def balancer(root: Path) -> str | None:
    """Name the program that moves interrupts about by itself, if it runs."""
    return BALANCER if host.is_running(BALANCER, root) else None


def _change(knob: str, file: Path, was: str, wanted: str) -> Change:
    """A governor is kept together with the energy preference, which changes with it."""
    if knob != governor.KIND:
        return Change(knob, "file", str(file), was, wanted)
    former = governor.read(file)
    return Change(knob, governor.KIND, str(file), former, governor.with_any(wanted, former))


def _offered(file: Path) -> list[str]:
    """List the words that the kernel would take, where it lists them."""
    beside = read_text(file.with_name(OFFERS[file.name])) if file.name in OFFERS else None
    text = beside if beside is not None else read_text(file) or ""
    return text.replace("[", " ").replace("]", " ").split() if beside is not None or "[" in text else []
