"""The governor of a frequency policy, and the energy preference that drivers change with it.

Under the governor `performance` intel_pstate and amd_pstate show the preference `performance`, and refuse any other;
under the next governor some give a default, which need not be what a user had set. So the journal keeps both together,
as text: `powersave, prefers balance_power`. ANY stands for whatever preference the driver chooses.
"""

from pathlib import Path

from castmates.linux.kernel_files import read_setting, write_setting

KIND = "governor"
PREFERENCE = "energy_performance_preference"
ANY = "any"
_BETWEEN = ", prefers "


def read(path: Path) -> str:
    """Return the governor in this file, and the preference beside it where there is one."""
    beside = path.with_name(PREFERENCE)
    governor = read_setting(path)
    return f"{governor}{_BETWEEN}{read_setting(beside)}" if beside.exists() else governor


def write(path: Path, text: str) -> None:
    """Set the governor, and then the preference where it is another one by now."""
    governor, _, preference = text.partition(_BETWEEN)
    write_setting(path, governor)
    beside = path.with_name(PREFERENCE)
    if preference not in ("", ANY) and read_setting(beside) != preference:
        write_setting(beside, preference)


def same(value: str, written: str) -> bool:
    """Check whether what was read is what was written down."""
    governor, _, preference = written.partition(_BETWEEN)
    return value == written or (preference == ANY and plain(value) == governor)


def with_any(governor: str, former: str) -> str:
    """Write down a governor that is to be set in place of a former one."""
    return f"{governor}{_BETWEEN}{ANY}" if _BETWEEN in former else governor


def plain(text: str) -> str:
    """Return the governor alone."""
    return text.partition(_BETWEEN)[0]
