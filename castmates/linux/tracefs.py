"""Where the kernel describes its tracepoints, and what this user may read there."""

from collections.abc import Collection
from pathlib import Path

from castmates.linux.kernel_files import mounts, read_int

HERE = Path("/")
_DESCRIBED = ("id", "format")  # the files of a tracepoint that perf reads


def mounted(root: Path = HERE) -> Path | None:
    """Return where tracefs is mounted, or None."""
    return next((Path(mount.point) for mount in mounts(root) if mount.fstype == "tracefs"), None)


def files(point: Path, tracepoints: Collection[str]) -> list[Path]:
    """List the files that perf reads in order to record these tracepoints, such as sched:sched_switch."""
    return [_folder(point, each) / name for each in tracepoints for name in _DESCRIBED]


def number_of(tracepoint: str, point: Path) -> int | None:
    """Return the kernel's number of a tracepoint; None where it has none, or this user may not read it."""
    return read_int(_folder(point, tracepoint) / "id")


def _folder(point: Path, tracepoint: str) -> Path:
    return point / "events" / Path(*tracepoint.split(":"))
