"""Where a trace is made: beside the one of its name, whose place it takes once it is whole."""

import shutil
from pathlib import Path

from castmates.english import size
from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.results.columns.trace import TRACE_RECORD
from castmates.results.records import read_json
from castmates.results.traces import room_for
from castmates.runner.tracing.rounds import RAW
from castmates.study.spec import Launch
from castmates.study.trace_launches import most_bytes

NEW, OLD = ".new", ".old"  # folders beside traces: what lies in one of them is listed nowhere


def refuse_full_disk(launch: Launch, folder: Path) -> None:
    """Refuse a launch whose raw files may not fit."""
    room, most = room_for(folder), most_bytes(launch)
    if room < most:
        raise CastmatesError(
            f"{folder}: recording this trace may take {size(most)} on disk, and {size(room)} are free: "
            "make room, or lower `trace.most` (--most) or `trace.rounds` (--rounds)."
        )


def begin(folder: Path) -> Path:
    """The empty folder in which the trace of `folder` is made again."""
    new, old = _beside(folder)
    try:
        if old.is_dir() and not folder.is_dir():  # a launch was killed between the two renames of `finish`
            old.rename(folder)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
    except OSError as problem:
        raise CastmatesError(
            f"{new} cannot be made ({reason(problem)}): give write access there, and run the same command again."
        ) from None
    return new


def finish(new: Path, folder: Path) -> None:
    """Put the new trace in the place of the old one; one that failed takes no place of one that did not."""
    _, old = _beside(folder)
    record = read_json(new / TRACE_RECORD)
    if record.get("status") != "measured" and read_json(folder / TRACE_RECORD).get("status") == "measured":
        give_up(new)
        raise CastmatesError(
            f"the launch failed ({str(record.get('reason')).rstrip('.')}; its logs are in {new}); the trace that was "
            f"there before is kept: {folder}."
        )
    try:
        shutil.rmtree(old, ignore_errors=True)
        if folder.is_dir():
            old.parent.mkdir(exist_ok=True)
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as problem:
        raise CastmatesError(
            f"the new trace {new} cannot take the place of {folder} ({reason(problem)}): give write access there, and "
            "run the same command again."
        ) from None
    _remove_empty(new.parent, old.parent)


def give_up(new: Path) -> None:
    """Leave the logs of a launch that gave nothing, and nothing that is large."""
    shutil.rmtree(new / RAW, ignore_errors=True)
    (new / TRACE_RECORD).unlink(missing_ok=True)


def remove(new: Path) -> None:
    """Leave nothing of a launch that was ended."""
    shutil.rmtree(new, ignore_errors=True)
    _remove_empty(new.parent)


def _beside(folder: Path) -> tuple[Path, Path]:
    return folder.parent / NEW / folder.name, folder.parent / OLD / folder.name


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
