"""Reads and puts back what pqos has set, as text for the journal: every class, and every CPU that is in one.

The target is the interface's name. A run may set several states in turn; the journal then names them all, ALSO between.
"""

from pathlib import Path

from castmates.errors import CastmatesError
from castmates.machine.pqos_text import State, parse_state
from castmates.machine.pqos_tool import Interface, Pqos
from castmates.machine.resctrl_state import ALSO
from castmates.study.cpus import format_cpu_list

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
