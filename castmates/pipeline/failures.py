"""Why jobs of a sweep failed, from their logs, which Snakemake does not show; and what is tried again."""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from castmates.english import counted

BEGUN = time.time()  # of the process that reads the Snakefile
OURS = "castmates: "
ENDED = "ended early, nothing recorded"  # what an interrupted launch writes
SHOWN = 5


def reasons(logs: Path, since: float = BEGUN) -> str:
    """A line for each reason in logs written since, with the first of its logs; "" where there is none."""
    logs_of: dict[str, list[Path]] = {}
    for file in sorted(logs.rglob("*.log")):
        if why := _why(file, since):
            logs_of.setdefault(why, []).append(file)
    lines = [_line(why, files) for why, files in list(logs_of.items())[:SHOWN]]
    more = [f"{len(logs_of) - SHOWN} more reasons stand below {logs}"] if len(logs_of) > SHOWN else []
    return "".join(f"{line}\n" for line in [*lines, *more])


def last_words(logs: Iterable[Path], count: int) -> list[str]:
    """The sentence of ours that one of a job's logs ends with, though Slurm's log follows; else their last lines."""
    lines: list[str] = []
    for file in logs:
        try:
            lines += file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            continue
        if lines and lines[-1].startswith(OURS):
            return lines[-1:]
    return lines[-count:]


def was_ended(lines: Sequence[str]) -> bool:
    """Whether these are the last lines of an interrupted launch."""
    return bool(lines) and ENDED in lines[-1]


def _line(why: str, files: list[Path]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{why} ({files[0]}{more})"


def _why(file: Path, since: float) -> str:
    """The sentence of ours, or the end of a traceback, that a log ends with; "" of other logs."""
    try:
        if file.stat().st_mtime < since:
            return ""
        lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines and (lines[-1].startswith(OURS) or "Traceback (most recent" in "\n".join(lines)) else ""


# What is discarded, so that it is measured again.


def discard(study: Path, changed: bool) -> Iterator[str]:
    """Discard failed and unusable launches; `changed`: also those that were measured otherwise than the study says."""
    from castmates.project import load
    from castmates.results.profiles import forget_failed
    from castmates.results.records import forget_useless
    from castmates.results.traces import forget_failed as forget_failed_traces
    from castmates.study.changed_design import changed_launches

    project = load(study)
    folder = project.results
    others = changed_launches(project.study, project.plan().launches) if changed else {}
    useless = forget_useless(folder, {path: f"measured with {words[0]}" for path, words in others.items()})
    for what, discarded in (
        ("launch", useless),
        ("profile launch", forget_failed(folder)),
        ("trace", forget_failed_traces(folder)),
    ):
        found = 0
        for reason, place in discarded:
            yield f"discarded ({reason}): {place}"
            found += 1
        if found or what == "launch":
            yield f"{counted(found, what)} discarded in {folder}"
