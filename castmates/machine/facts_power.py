"""What the machine's processors do to save power: idle states and the range of the uncore's clock."""

from pathlib import Path
from typing import Any

from castmates.linux import uncore_frequency
from castmates.linux.kernel_files import CPU_DIR, read_int, read_text
from castmates.linux.uncore_frequency import HIGHEST, INITIAL, LOWEST
from castmates.study.cpus import format_cpu_list


def idle_states(root: Path) -> dict[str, Any] | None:
    """Return the driver and governor of idle states, and the states: how long each takes to wake, and where it is off.

    None where the kernel chooses no idle states, as in most virtual machines.
    """
    folder = root / CPU_DIR / "cpuidle"
    driver = read_text(folder / "current_driver")
    governor = read_text(folder / "current_governor") or read_text(folder / "current_governor_ro")
    states: dict[tuple[int, str], int | None] = {}
    off: dict[tuple[int, str], list[int]] = {}
    for state in (root / CPU_DIR).glob("cpu[0-9]*/cpuidle/state[0-9]*"):
        key = int(state.name[len("state") :]), read_text(state / "name") or state.name
        states.setdefault(key, read_int(state / "latency"))
        if read_int(state / "disable"):
            off.setdefault(key, []).append(int(state.parts[-3][len("cpu") :]))
    if driver in (None, "none") and not states:
        return None
    listed = [
        {"name": name, "wakes_in_us": states[number, name], "off_on": format_cpu_list(off.get((number, name), []))}
        for number, name in sorted(states)
    ]
    return {"driver": driver, "governor": governor, "states": listed}


def uncore_clock(root: Path) -> dict[str, dict[str, int]] | None:
    """Return the range in MHz of each of the uncore's clock domains; None where the kernel shows none."""
    ranges = {
        folder.name: {
            name.removesuffix("_freq_khz"): khz // 1000
            for name in (LOWEST, HIGHEST, *INITIAL.values())
            if (khz := read_int(folder / name)) is not None
        }
        for folder in uncore_frequency.domains(root)
    }
    return ranges or None
