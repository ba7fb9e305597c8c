"""Why jobs of a sweep failed, from their logs: Snakemake, asked to be quiet about rules, shows none of them."""

import time
from pathlib import Path

BEGUN = time.time()  # of the process that reads the Snakefile
OURS = "castmates: "
SHOWN = 5


def told(logs: Path, since: float = BEGUN) -> str:
    """A line for each reason in logs written since, with the first of its logs; "" where there is none."""
    found: dict[str, list[Path]] = {}
    for file in sorted(logs.rglob("*.log")):
        if why := _why(file, since):
            found.setdefault(why, []).append(file)
    lines = [_line(why, files) for why, files in list(found.items())[:SHOWN]]
    more = [f"{len(found) - SHOWN} more reasons stand below {logs}"] if len(found) > SHOWN else []
    return "".join(f"{line}\n" for line in [*lines, *more])


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
