"""Which Top-Down metrics this perf knows on this processor, and which of them give a value."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from castmates.counters.topdown.perf_csv import WHOLE
from castmates.counters.topdown.perf_reading import parse
from castmates.counters.topdown.process import Share, last_words, whole_shares
from castmates.errors import CastmatesError
from castmates.linux.capable_copy import PERF_PACKAGES
from castmates.study.counter_keys import MEMORY_PART, category, of_level

WITHIN_S = 20.0
LEVELS = {1: ("TopdownL1", "TopDownL1", "PipelineL1"), 2: ("TopdownL2", "TopDownL2", "PipelineL2")}
SMT = Path("/sys/devices/system/cpu/smt/active")
# Long enough for the kernel to pass the counters round, if they do not suffice.
# Since 6.3 perf counts events for the thresholds of metrics too; without them more fits on the counters.
FORMATS = (("-j", "--metric-no-threshold"), ("-j",))
SERIES = ("-I", "100", "--summary")
TRIAL = ("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")


@dataclass(frozen=True)
class Known:
    """A metric as perf lists it."""

    groups: tuple[str, ...]
    expression: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Offer:
    """What perf offers here. `turns` are the metrics, or groups of them, that the counters hold at the same time."""

    program: str = ""
    version: str = ""
    turns: tuple[tuple[str, ...], ...] = ()
    format: tuple[str, ...] = ("-j",)
    metrics: Mapping[str, Known] = field(default_factory=dict)  # by perf's name: those that belong to the tree
    in_series: bool = False  # whether it also prints them by interval, with the whole at the end
    why_not: str = ""  # in a sentence, where there are none
    notes: tuple[str, ...] = ()


def probe(level: int, program: str | None = None) -> Offer:
    """Ask perf for the metrics up to this level, try them out, and see what fits on the counters at once."""
    path = program or shutil.which("perf")
    if path is None:
        return Offer(why_not=f"there is no program perf here; install {PERF_PACKAGES}")
    version = re.sub(r"^perf version ", "", _run([path, "--version"]).output.strip()) or "unknown"
    known = list_metrics(path)
    ours = {name: metric for name, metric in known.items() if category(name)}
    wanted = wanted_groups(known, level)
    if not wanted:
        why = "knows no Top-Down metrics of this processor (groups TopdownL1 of Intel and Arm, PipelineL1 of AMD)"
        return Offer(path, version, metrics=ours, why_not=f"perf {version} {why}")
    offer = _fitted(Offer(path, version, format=_format(path), metrics=ours), wanted)
    return replace(offer, in_series=bool(offer.turns) and not isinstance(_trial(offer, offer.turns[0], SERIES), str))


def wanted_groups(known: Mapping[str, Known], level: int, smt: bool | None = None) -> list[tuple[str, ...]]:
    """Return the groups of metrics for these levels and, with level 2, the memory part of level 3, in perf's words."""
    there = {group for metric in known.values() for group in metric.groups}
    active = _smt_is_active() if smt is None else smt
    wanted: list[tuple[str, ...]] = []
    for number in range(1, level + 1):
        names = [f"{name}_SMT" for name in LEVELS[number] if active] + list(LEVELS[number])
        if chosen := next((name for name in names if name in there), None):
            wanted.append((chosen,))
    if level >= 2 and wanted:
        memory = [name for name in known if (known_category := category(name)) and known_category.name in MEMORY_PART]
        if active and any(name.endswith("_SMT") for name in memory):
            memory = [name for name in memory if name.endswith("_SMT") or f"{name}_SMT" not in memory]
        wanted += [tuple(memory)] if memory else []
    return wanted


def list_metrics(program: str) -> dict[str, Known]:
    """Return all metrics that perf lists: from its JSON (6.2 and later) or, before, from its text."""
    answer = _run([program, "list", "--json", "metrics"])
    if answer.output.lstrip().startswith("["):
        return read_json_list(answer.output)
    return read_text_list(_run([program, "list", "--details", "metrics"]).output, _groups(program))


def read_json_list(text: str) -> dict[str, Known]:
    """Read `perf list --json`; events and what else it lists are passed over."""
    try:
        listed = json.loads(re.sub(r",\s*([\]}])", r"\1", text))
    except ValueError:
        return {}
    return {
        entry["MetricName"]: _known(entry) for entry in listed if isinstance(entry, dict) and entry.get("MetricName")
    }


def read_text_list(text: str, members: Mapping[str, Sequence[str]]) -> dict[str, Known]:
    """Read `perf list --details metrics`; `members` lists which metric is in which group, because the text does not."""
    metrics: dict[str, Known] = {}
    name = ""
    lines: list[str] = []
    for line in [*text.splitlines(), "  end_"]:
        if heading := re.fullmatch(r" {2}([A-Za-z]\S*)", line):
            if name:
                groups = tuple(group for group, names in members.items() if name in names)
                metrics[name] = Known(groups, lines[-1] if len(lines) > 1 else "")
            name, lines = heading[1], []
        elif line.strip().startswith("["):
            lines.append(line.strip()[1:].removesuffix("]"))
    return metrics


def _known(entry: Mapping[str, Any]) -> Known:
    groups = tuple(filter(None, re.split(r"[;,]\s*", str(entry.get("MetricGroup", "")))))
    return Known(groups, str(entry.get("MetricExpr", "")), str(entry.get("ScaleUnit", "")))


def _groups(program: str) -> dict[str, list[str]]:
    """Return the metrics of each Top-Down group; older perfs name the groups alone, so their level decides."""
    names = set(_run([program, "list", "--raw-dump", "metricgroup"]).output.split())
    ours = [group for level in LEVELS.values() for name in level for group in (name, f"{name}_SMT") if group in names]
    levels = {group: of_level(1 if "L1" in group else 2) for group in ours}
    listed = _run([program, "list", "--raw-dump", "metrics"]).output.split()
    return {
        group: [name for name in listed if (known_category := category(name)) and known_category.name in level]
        for group, level in levels.items()
    }


def _fitted(offer: Offer, wanted: list[tuple[str, ...]]) -> Offer:
    """Try all at once; where the counters do not suffice, each by itself."""
    together = tuple(name for group in wanted for name in group)
    all_tried = _trial(offer, together)
    if _fits(all_tried):
        return replace(offer, turns=(together,))
    turns, notes, refusals = [], [], []
    for group in wanted:
        tried = all_tried if group == together else _trial(offer, group)
        if isinstance(tried, str):
            refusals.append(f"{', '.join(group)}: {tried}")
            continue
        turns.append(group)
        if not _fits(tried):
            least = min(share.running for share in tried if share.running is not None)
            notes.append(f"{', '.join(group)} does not fit on the counters: counted for {least:.0%} of the time")
    if not turns:
        return replace(offer, why_not=refusals[0])
    return replace(offer, turns=tuple(turns), notes=(*notes, *(f"left out: {refusal}" for refusal in refusals)))


def _fits(tried: list[Share] | str) -> bool:
    return not isinstance(tried, str) and all(share.running is None or share.running >= WHOLE for share in tried)


def _trial(offer: Offer, names: Iterable[str], more: Sequence[str] = ()) -> list[Share] | str:
    """Return the shares of the whole of a short busy loop, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stat"
        answer = _run(
            [offer.program, "stat", *offer.format, *more, "-o", str(file), "-M", ",".join(names), "--", *TRIAL]
        )
        text = file.read_text(errors="replace") if file.is_file() else ""
    why = last_words(answer.errors) or "this processor or virtual machine has no counters for its events"
    try:
        tried = whole_shares(parse(text))
    except CastmatesError:
        return why
    return tried if any(share.value is not None for share in tried) else why


@dataclass(frozen=True)
class _Answer:
    output: str
    errors: str


def _run(words: Sequence[str]) -> _Answer:
    """Run a short perf; one that cannot be run, or hangs, prints nothing."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WITHIN_S,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/"},
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return _Answer("", str(problem))
    return _Answer(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def _format(program: str) -> tuple[str, ...]:
    """Return the best of its forms that this perf has."""
    for words in FORMATS:
        if '"counter-value"' in _run([program, "stat", *words, "-e", "task-clock", "--", "true"]).errors:
            return words
    return ("-x", ";")


def _smt_is_active() -> bool:
    try:
        return SMT.read_text().strip() == "1"
    except OSError:
        return False
