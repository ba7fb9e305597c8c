"""What perf knows of this processor: its events and metrics, by name and formula, without their descriptions."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

WITHIN_S = 60.0
OF_EVENT = ("Unit", "Encoding")
# Not all it lists: tracepoints and probes have the names of other people's programs.
KINDS = ("hw", "sw", "cache", "pmu", "metric")


def perf_lists() -> dict[str, str]:
    """Ask perf; nothing where there is none."""
    perf = shutil.which("perf")
    version = _printed(perf, "--version") if perf else ""
    if not perf or not version.startswith("perf version "):
        return {}
    lines = sorted({line for kind in KINDS for line in _listed(perf, kind)})
    return {"castmates/perf/version": version, "castmates/perf/list": "".join(f"{line}\n" for line in lines)}


def _listed(perf: str, kind: str) -> Iterator[str]:
    """Yield a line for each event and metric, from its JSON (6.2 and later) or, before, its bare names."""
    text = _printed(perf, "list", "--json", kind)
    if text.lstrip().startswith("["):
        yield from from_json(text)
        return
    word = "metric" if kind == "metric" else "event"
    yield from (f"{word} {name}" for name in _printed(perf, "list", "--raw-dump", kind).split())


def from_json(text: str) -> Iterator[str]:
    """Yield a line for each entry: an event with its unit and encoding, a metric with its groups, unit and formula."""
    try:
        entries: list[dict[str, Any]] = json.loads(re.sub(r",\s*([\]}])", r"\1", text))
    except ValueError:
        return
    for entry in entries:
        if "Tracepoint" in str(entry.get("EventType", "")):
            continue
        if name := entry.get("MetricName"):
            yield "\t".join(
                [f"metric {name}", *(_word(entry, key) for key in ("MetricGroup", "ScaleUnit", "MetricExpr"))]
            )
        elif name := entry.get("EventName"):
            yield "\t".join([f"event {name}", *(_word(entry, key) for key in OF_EVENT)])


def _word(entry: dict[str, Any], key: str) -> str:
    return " ".join(str(entry.get(key, "")).split())


def _printed(perf: str, *words: str) -> str:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/"}
    try:
        done = subprocess.run(
            [perf, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WITHIN_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""
