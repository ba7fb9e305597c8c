"""The knobs that a study may set: where each lies, what its words mean, and what to do where a machine lacks it."""

import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import governor, host, kernel_files, msr
from castmates.linux.host import SYSCTL
from castmates.linux.kernel_files import CPU_DIR, HIGHEST, INITIAL, LOWEST, STEP_KHZ, read_int, read_text
from castmates.machine.journal import KINDS, Change
from castmates.machine.topology import parse_cpu_list, read_topology
from castmates.study.cpus import format_cpu_list

# Knobs that need more than one word in one kind of file: the uncore's clock, prefetchers, where kernel work goes.

IRQ_AFFINITY, WORKQUEUES, UNCORE, PREFETCHERS = "irq_affinity", "workqueues", "uncore", "prefetchers"
LEAVE_OUT = "or leave it out of 'machine.prepare'"
WORKQUEUE_MASK = "sys/devices/virtual/workqueue/cpumask"


def interrupts_away(root: Path, cpus: Collection[int]) -> list[Change]:
    """List how interrupts, and those still to come, have to be moved off these CPUs."""
    quiet, others, online = _divided(root, cpus, IRQ_AFFINITY)
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
    return changes + _mask_without(IRQ_AFFINITY, root / host.DEFAULT_AFFINITY, quiet, others)


def workqueues_away(root: Path, cpus: Collection[int]) -> list[Change]:
    """List how the kernel's unbound work has to be moved off these CPUs."""
    quiet, others, _ = _divided(root, cpus, WORKQUEUES)
    if read_text(root / WORKQUEUE_MASK) is None:
        raise CastmatesError(f"{WORKQUEUES} cannot be set here: there is no /{WORKQUEUE_MASK}; {LEAVE_OUT}.")
    return _mask_without(WORKQUEUES, root / WORKQUEUE_MASK, quiet, others)


def uncore_fixed(root: Path, word: str) -> list[Change]:
    """List how every clock domain of the uncore gets this clock: the highest, the lowest, or so many MHz."""
    folders = kernel_files.domains(root)
    if not folders:
        raise CastmatesError(
            f"{UNCORE} cannot be set here: the kernel shows no uncore clock (it takes an Intel server processor and "
            f"the driver intel_uncore_frequency), so set it in the firmware; {LEAVE_OUT}."
        )
    changes = []
    for folder in folders:
        ends = {name: read_int(folder / initial) for name, initial in INITIAL.items()}
        lowest, highest = ends[LOWEST], ends[HIGHEST]
        if lowest is None or highest is None:
            raise CastmatesError(f"{UNCORE} cannot be set here: {folder} does not show its range; {LEAVE_OUT}.")
        wanted = {"lowest": lowest, "highest": highest}.get(word) or int(word) * 1000
        if not lowest <= wanted <= highest or wanted % STEP_KHZ:
            raise CastmatesError(
                f"{UNCORE} cannot be {word} MHz here: {folder} takes {lowest // 1000} to {highest // 1000} MHz in "
                f"steps of {STEP_KHZ // 1000}; take one of them, {LEAVE_OUT}."
            )
        now = {name: read_value(UNCORE, folder / name) for name in (LOWEST, HIGHEST)}
        # The limits must never cross, neither now nor when they are put back in the opposite order.
        order = (HIGHEST, LOWEST) if wanted > int(now[HIGHEST]) else (LOWEST, HIGHEST)
        changes += [Change(UNCORE, "file", str(folder / name), now[name], str(wanted)) for name in order]
    return [change for change in changes if change.former != change.new]


def prefetchers(root: Path, word: str, cpus: Collection[int]) -> list[Change]:
    """List how the hardware prefetchers of these CPUs' cores are switched; all other bits stay."""
    return control_of(root, LEAVE_OUT).changes(root, word, cpus, LEAVE_OUT)


def read_value(knob: str, file: Path) -> str:
    """Read one file of a knob; an error is a sentence."""
    try:
        return KINDS["file"].read(file)
    except OSError as error:
        raise CastmatesError(f"{knob} cannot be read: {file}: {error.strerror}; {LEAVE_OUT}.") from None


def _divided(root: Path, cpus: Collection[int], knob: str) -> tuple[set[int], set[int], set[int]]:
    """Return the CPUs to be kept quiet, the others, and all; siblings are quiet too, if others are left."""
    online = set(parse_cpu_list(read_text(root / CPU_DIR / "online") or ""))
    siblings = {cpu for processor in read_topology(root).cpus if processor.id in cpus for cpu in processor.siblings}
    quiet = set(cpus) | siblings if online - siblings - set(cpus) else set(cpus)
    others = online - quiet
    if not others:
        what = "interrupts have" if knob == IRQ_AFFINITY else "the kernel's work has"
        raise CastmatesError(
            f"{knob} cannot be 'away' here: the launch is on every CPU there is ({format_cpu_list(online)}), so "
            f"{what} nowhere to go; use fewer CPUs, {LEAVE_OUT}."
        )
    return quiet, others, online


def _mask_without(knob: str, file: Path, quiet: set[int], others: set[int]) -> list[Change]:
    """List how a mask in hexadecimal loses CPUs; nothing where there is no such file."""
    if read_text(file) is None:
        return []
    was = read_value(knob, file)
    now = {bit for bit in range(4 * len(was)) if int(was.replace(",", ""), 16) >> bit & 1}
    return [Change(knob, "file", str(file), was, _mask(now - quiet or others, was))] if now & quiet else []


def _mask(cpus: Collection[int], like: str) -> str:
    """Write a mask with as many digits, and in the same groups, as the kernel prints it."""
    digits = f"{sum(1 << cpu for cpu in cpus):x}".zfill(len(like.replace(",", "")))
    groups = [digits[max(0, end - 8) : end] for end in range(len(digits), 0, -8)]
    return ",".join(reversed(groups)) if "," in like else digits


# The register in which a processor's hardware prefetchers are switched off, where its maker documents it.

NAME = "prefetchers"
TAKE_OUT = "or take 'off' out of 'cache.prefetchers'"  # of a study that switches them by scene
# Intel's register and its four bits: L2 stream and adjacent line, L1 stream and by instruction. Of server processors
# alone: on others the same bits mean something else (Intel, Disclosure of Hardware Prefetcher Control, 2014). From
# Sapphire Rapids on a fifth one, L2's of several paths (AMP; Intel's manual of its processors, volume 4).
PREFETCH_CONTROL, PREFETCH_BITS, AMP = 0x1A4, 0xF, 1 << 5
XEONS = {
    **dict.fromkeys((0x1A, 0x1E, 0x2E, 0x2C, 0x2F, 0x2D, 0x3E, 0x3F, 0x4F, 0x56, 0x55, 0x6A, 0x6C), PREFETCH_BITS),
    **dict.fromkeys((0x8F, 0xCF, 0xAD, 0xAE), PREFETCH_BITS | AMP),
}
# AMD's and its five: L1 stream, stride and region, L2 stream and up/down (AMD64 manual, volume 2, Prefetch Control).
# Families of Zen 3 and later; a model that lacks the register refuses to read it.
AMD_CONTROL, AMD_BITS = 0xC0000108, 0x2F
AMD_FAMILIES = frozenset({25, 26})


@dataclass(frozen=True, slots=True)
class Control:
    """A register, of each core, and its bits that are set where a prefetcher is off."""

    register: int
    bits: int

    def changes(self, root: Path, word: str, cpus: Collection[int], leave_out: str) -> list[Change]:
        """List what has to be written so that these CPUs' prefetchers are `on` or `off`; all other bits stay."""
        changes = []
        for cpu in sorted(cpus):
            target = msr.path_of(cpu, self.register, root)
            try:
                was = KINDS[msr.KIND].read(target)
            except OSError as error:
                raise CastmatesError(
                    f"{NAME} cannot be read: {target}: {error.strerror}; load the kernel module msr (sudo modprobe "
                    f"msr) and run the study as root, {leave_out}."
                ) from None
            now = int(was, 16)
            new = now | self.bits if word == "off" else now & ~self.bits
            if new != now:
                changes.append(Change(NAME, msr.KIND, str(target), was, f"{new:#x}"))
        return changes


def control_of(root: Path, leave_out: str) -> Control:
    """Return the register of this processor; an error is a sentence."""
    if (locked := host.lockdown(root)) not in (None, "none"):
        raise CastmatesError(
            f"{NAME} cannot be set here: the kernel is locked down ({locked}), so registers can be read and not "
            f"written; set them in the firmware, {leave_out}."
        )
    shown = host.cpuinfo(root)
    family, model = (int(text) if (text := shown.get(key, "")).isdecimal() else -1 for key in ("cpu family", "model"))
    if shown.get("vendor_id") == "GenuineIntel" and family == 6 and model in XEONS:
        return Control(PREFETCH_CONTROL, XEONS[model])
    if shown.get("vendor_id") == "AuthenticAMD" and family in AMD_FAMILIES:
        return Control(AMD_CONTROL, AMD_BITS)
    raise CastmatesError(
        f"{NAME} cannot be set here: castmates knows the registers of Intel's Xeon processors and of AMD's since Zen 3 "
        f"alone, so set them in the firmware; {leave_out}."
    )


def switches_off(root: Path, cpus: Iterable[int]) -> list[Change]:
    """List what switches the prefetchers of these CPUs off for a scene; an error is a sentence."""
    cpus = sorted(cpus)
    changes = control_of(root, TAKE_OUT).changes(root, "off", cpus, TAKE_OUT)
    already = [cpu for cpu in cpus if not any(f"/cpu/{cpu}/" in change.target for change in changes)]
    if already:
        raise CastmatesError(
            f"{NAME} of CPUs {format_cpu_list(already)} are off already, so there is nothing to switch: set them on in "
            f"the firmware, {TAKE_OUT}."
        )
    return changes


def refusal(root: Path, cpus: Iterable[int]) -> str:
    """Why they cannot be switched off for a scene; "" where nothing speaks against it."""
    try:
        switches_off(root, cpus)
    except CastmatesError as error:
        return str(error)
    return ""


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
            # List the words that the kernel would take, where it lists them.
            beside = read_text(file.with_name(OFFERS[file.name])) if file.name in OFFERS else None
            text = beside if beside is not None else read_text(file) or ""
            offered = text.replace("[", " ").replace("]", " ").split() if beside is not None or "[" in text else []

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
        return interrupts_away(root, cpus)
    if knob == WORKQUEUES:
        return workqueues_away(root, cpus)
    if knob == UNCORE:
        return uncore_fixed(root, word)
    if knob == PREFETCHERS:
        return prefetchers(root, word, cpus)
    return KNOBS[knob].changes(root, word)


def balancer(root: Path) -> str | None:
    """Name the program that moves interrupts about by itself, if it runs."""
    return BALANCER if host.running([BALANCER], root) else None


def _change(knob: str, file: Path, was: str, wanted: str) -> Change:
    """A governor is kept together with the energy preference, which changes with it."""
    if knob != governor.KIND:
        return Change(knob, "file", str(file), was, wanted)
    former = governor.read(file)
    return Change(knob, governor.KIND, str(file), former, governor.with_any(wanted, former))


# Holds the latency that CPUs may take to wake up: the kernel obeys as long as the device is open, and no longer.

KNOB, DEVICE = "cpu_dma_latency", "dev/cpu_dma_latency"
_NUMBER = struct.Struct("=i")


@contextmanager
def held(root: Path, microseconds: int) -> Iterator[dict[str, dict[str, str]]]:
    """Ask for this latency until the end; what was in force and what is asked for go into the record.

    It needs no journal: however this process ends, the kernel takes it back by itself.
    """
    file = root / DEVICE
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise _refusal(file, error) from None
    try:
        was = _ask(fd, file, microseconds)
        yield {"before": {str(file): was}, "set": {str(file): str(microseconds)}}
    finally:
        os.close(fd)


def _ask(fd: int, file: Path, microseconds: int) -> str:
    try:
        before = os.pread(fd, _NUMBER.size, 0)
        os.pwrite(fd, _NUMBER.pack(microseconds), 0)
    except OSError as error:
        raise _refusal(file, error) from None
    return str(_NUMBER.unpack(before)[0]) if len(before) == _NUMBER.size else "not shown"


def _refusal(file: Path, error: OSError) -> CastmatesError:
    return CastmatesError(f"{KNOB} cannot be set: {file}: {error.strerror}; run the study as root, {LEAVE_OUT}.")
