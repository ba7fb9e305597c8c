"""Knobs that need more than one word in one kind of file: the uncore's clock, prefetchers, where kernel work goes."""

from collections.abc import Collection
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import host, uncore_frequency
from castmates.linux.kernel_files import CPU_DIR, read_int, read_text
from castmates.linux.uncore_frequency import HIGHEST, INITIAL, LOWEST, STEP_KHZ
from castmates.machine.journal import KINDS, Change
from castmates.machine.prefetch_control import control_of
from castmates.machine.topology import parse_cpu_list, read_topology
from castmates.study.cpus import format_cpu_list

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
    folders = uncore_frequency.domains(root)
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
