"""Reads and puts back what of resctrl a run changes besides groups: a group's schemata, and the mount itself.

As text, for the journal. Schemata are compared by meaning: kernels pad them differently, and a domain that went
offline is not a change. A run may set several schemata in turn; the journal then names them all, ALSO between them.
"""

import errno
import os
import re
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.linux.kernel_files import Mount, mounts, read_text, write_kernel
from castmates.machine.pqos_tool import Interface, Pqos, State, parse_state
from castmates.study.cpus import format_cpu_list

ABSENT = "absent"
MOUNTED = "mounted"
ALSO = " | "
ANYTHING = "whatever was written since"  # of schemata that another user may write
FSTYPE = "resctrl"
POINT = Path("/sys/fs/resctrl")  # where it is mounted, usually
OPTIONS = ("cdp", "cdpl2", "mba_MBps", "debug")  # those that change what resctrl shows
NO_GROUPS = {"info", "mon_data", "mon_groups"}  # folders of the default group
CLUSTER = "mon_sub_"  # begins the name of the folder of a cluster, in that of the cache that it is a part of
# "No throttle" with mba_MBps. The kernel shows 2^32 - 1, but before 2b5648416e47 (6.12) it rounds what is written up to
# the step of per cent and cuts that to 32 bits, which makes it 4; this is read for it and written, and survives.
UNTHROTTLED_MIBPS = 2**32 - 96
THROTTLE = "MB"
AMD_MOST, ZEN_5_MOST = 2048, 4096  # in 1/8 GB/s, "no throttle" of AMD processors, and of those since Zen 5
ZEN_5 = 0x1A  # a family
LARGEST_SHARE = 100  # per cent; other units are kept as they are written

_PADDED = re.compile(r"([=:;])[ \t]+")

Settings = dict[tuple[str, str], str]


def amd_most(family: int, shown: int = 0) -> int:
    """Return "no throttle" of a family: the kernel shows only what groups have, which may be less."""
    return 1 << (max(ZEN_5_MOST if family >= ZEN_5 else AMD_MOST, shown) - 1).bit_length()


def settings(text: str) -> Settings:
    """Take schemata apart: (resource, domain) -> value, without the blanks and zeros that kernels pad with."""
    values: Settings = {}
    for line in _PADDED.sub(r"\1", text).split():
        resource, _, domains = line.partition(":")
        for domain, equals, value in (setting.partition("=") for setting in domains.split(";")):
            if equals:
                values[resource, domain.lstrip("0") or "0"] = _canonical(resource, value.lower().lstrip("0") or "0")
    return values


def _canonical(resource: str, value: str) -> str:
    beyond = resource == THROTTLE and value.isdecimal() and int(value) > UNTHROTTLED_MIBPS
    return str(UNTHROTTLED_MIBPS) if beyond else value


def as_lines(values: Settings) -> list[str]:
    """Put schemata together again, a line for each resource."""
    domains: dict[str, list[str]] = {}
    for (resource, domain), value in values.items():
        domains.setdefault(resource, []).append(f"{domain}={value}")
    return [f"{resource}:{';'.join(each)}" for resource, each in domains.items()]


def read_schemata(path: Path) -> str:
    """Return the schemata of a group in one line."""
    return " ".join(as_lines(settings(path.read_text())))


def write_schemata(path: Path, text: str) -> None:
    """Set schemata given in one line; domains that have gone since are left out."""
    there = settings(path.read_text())
    wanted = {key: value for key, value in settings(text).items() if key in there}
    write_kernel(path, "".join(f"{line}\n" for line in as_lines(wanted)))
    shown = settings(path.read_text())
    # Arm shows the fraction that it keeps of a throttle, and rounds up what is written: then the step below is meant.
    above = {
        key: str(2 * int(value) - int(shown[key]))
        for key, value in wanted.items()
        if key[0] == THROTTLE and int(value) < int(shown[key]) <= LARGEST_SHARE
    }
    if above:
        write_kernel(path, "".join(f"{line}\n" for line in as_lines(above)))


def same_schemata(current: str, meant: str) -> bool:
    """Check whether what was read is one of what is meant, on the domains that both know."""
    return meant == ANYTHING or any(_agree(settings(current), settings(text)) for text in meant.split(ALSO))


def _agree(first: Settings, second: Settings) -> bool:
    common = first.keys() & second.keys()
    return bool(common) and all(first[key] == second[key] for key in common)


def read_mount(point: Path) -> str:
    """Check whether, and with which options, resctrl is mounted at a place."""
    here = next((here for here in mounts(Path("/")) if here.fstype == FSTYPE and here.point == str(point)), None)
    return ABSENT if here is None else " ".join([MOUNTED, *options_of(here)])


def options_of(mounted: Mount) -> list[str]:
    """List the options of a mount that change what resctrl shows."""
    return [option for option in mounted.options.split(",") if option in OPTIONS]


def write_mount(point: Path, wanted: str) -> None:
    """Mount with these options, or unmount, which resets everything: never while anybody seems to use it."""
    if wanted != ABSENT:
        host.mount(FSTYPE, point, ",".join(wanted.split()[1:]))
    elif left := groups_at(point):
        raise OSError(errno.EBUSY, f"to unmount would remove groups that are still there: {', '.join(left)}")
    elif not _is_full(point):
        raise OSError(errno.EBUSY, "to unmount would reset the masks of its default group, which somebody has set")
    else:
        host.unmount(point)


def groups_at(point: Path) -> list[str]:
    """Name the control and monitoring groups besides the default one."""
    control = [entry.name for entry in os.scandir(point) if entry.is_dir() and entry.name not in NO_GROUPS]
    try:
        monitoring = [f"mon_groups/{entry.name}" for entry in os.scandir(point / "mon_groups")]
    except FileNotFoundError:  # without monitoring
        monitoring = []
    return sorted(control) + sorted(monitoring)


def _is_full(point: Path) -> bool:
    """Check whether the default group has all ways, as it has after a mount."""
    masks = settings((point / "schemata").read_text()).items()
    widest = {resource: read_text(point / "info" / resource / "cbm_mask") for (resource, _), _ in masks}
    return all(int(value, 16) == int(full, 16) for (resource, _), value in masks if (full := widest[resource]))


# What pqos has set, as text for the journal: every class, and every CPU that is in one.
#
# The target is the interface's name. A run may set several states in turn; the journal then names them all, ALSO
# between.

KIND = "pqos"
MOST_WORDS = 32  # settings in one call: so many the tool takes


def read(target: Path) -> str:
    """Return what is in force."""
    try:
        return as_text(state_of(tool_of(target)))
    except CastmatesError as problem:
        raise OSError(0, str(problem)) from None


def write(target: Path, text: str) -> None:
    """Set classes first and cores then, as given in one line."""
    try:
        tool = tool_of(target)
        set_all(tool, text, as_text(state_of(tool)))
    except CastmatesError as problem:
        raise OSError(0, str(problem)) from None


def same(current: str, meant: str) -> bool:
    """Check whether what was read is one of what is meant."""
    return any(current.split() == text.split() for text in meant.split(ALSO))


def tool_of(target: Path) -> Pqos:
    """Return the tool with the interface that a target names."""
    interface: Interface = "os" if target.name == "os" else "msr"
    return Pqos(interface)


def state_of(tool: Pqos) -> State:
    """Ask for everything that is in force."""
    state = parse_state(tool.call("-s"))
    if not state.cores or not (state.masks or state.throttles):
        raise CastmatesError(
            f"pqos --iface={tool.interface} -s names no classes or no cores: this processor shares nothing out, or "
            "this version of pqos prints it in another way."
        )
    return state


def as_text(state: State) -> str:
    """Put a state in one line, in the words that pqos takes."""
    return " ".join([*class_words(state), *core_words({cpu: number for cpu, (_, number) in state.cores.items()})])


def class_words(state: State) -> list[str]:
    """List the words that set all classes of a state."""
    words = []
    for (domain, number), (data, code) in sorted(state.masks.items()):
        if data == code:
            words.append(f"llc@{domain}:{number}={data:#x}")
        else:
            words += [f"llc@{domain}:{number}d={data:#x}", f"llc@{domain}:{number}c={code:#x}"]
    throttle = "mba_max" if state.unit == "MiB/s" else "mba"
    return words + [f"{throttle}@{at}:{number}={value}" for (at, number), value in sorted(state.throttles.items())]


def core_words(classes: dict[int, int]) -> list[str]:
    """List the words that put CPUs into their classes."""
    return [
        f"core:{number}={format_cpu_list(cpu for cpu, its in classes.items() if its == number)}"
        for number in sorted(set(classes.values()))
    ]


def set_all(tool: Pqos, wanted: str, now: str) -> None:
    """Set what differs: classes first, then cores, so that no core is in a class before the class is set."""
    words = [word for word in wanted.split() if word not in now.split()]
    for option, chosen in (
        ("-e", [word for word in words if not word.startswith("core:")]),
        ("-a", [word for word in words if word.startswith("core:")]),
    ):
        for first in range(0, len(chosen), MOST_WORDS):
            tool.call(option, ";".join(chosen[first : first + MOST_WORDS]))
