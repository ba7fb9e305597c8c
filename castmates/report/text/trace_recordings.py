"""What each trace of a study holds, what recording cost, what is missing, and how to open it."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from castmates.english import counted
from castmates.report.results import Results
from castmates.report.text.words import number
from castmates.report.traces import Trace, left_out, traces

Row = Mapping[str, Any]


def context(results: Results) -> dict[str, Any]:
    """What the page shows."""
    return {
        "failed": left_out(results),
        "rows": [row for trace in traces(results) for row in _rows(trace)],
        "remarks": [sentence for trace in traces(results) for sentence in _remarks(trace)],
        "links": [(trace.name, trace.links()) for trace in traces(results)],
        "command": f"castmates trace query {results.study_file or results.folder}",
    }


def _rows(trace: Trace) -> Iterator[Row]:
    """A row per recording."""
    for scene in trace.about.get("scenes") or ():
        on, off = _number(scene.get("rate_on")), _number(scene.get("rate_off"))
        yield {
            "trace": trace.name,
            "scene": scene.get("scene", ""),
            "round": scene.get("round", 1),
            "seconds": (scene["t1_ns"] - scene["t0_ns"]) / 1e9,
            "rate_on": on,
            "rate_off": off,
            "longer_pct": 100 * (off / on - 1) if on and off else math.nan,
            "events": _events(scene),
            "lost": sum(int(source.get("lost") or 0) for source in scene.get("sources") or ()),
        }


def _events(scene: Row) -> int:
    return sum(sum((source.get("events") or {}).values()) for source in scene.get("sources") or ())


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _remarks(trace: Trace) -> Iterator[str]:
    """What to know of it: clocks, losses, what is missing."""
    sources = trace.about.get("sources") or ()
    apart = [source["alignment_ns"] for source in sources if source.get("alignment_ns")]
    if apart:
        yield f"{trace.name}: the clocks of its sources agree to {number(max(apart) / 1e3, 1)} µs or better."
    lost = {str(source.get("name")): int(source["lost"]) for source in sources if source.get("lost")}
    for name, count in lost.items():
        yield f"{trace.name}: {name} lost {counted(count, 'event')}; what lies around these moments may lack something."
    for words in trace.warnings():
        yield f"{trace.name}: its flame graphs may mislead. {words}"
    for words in trace.about.get("missing") or ():
        yield f"{trace.name}: {words}"
