"""What a trace holds, what it cost, what it lacks, and how to open it: in lines for a terminal."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from castmates.english import by_reason
from castmates.results.columns.trace import OPENED
from castmates.results.traces import lacking

KINDS = {
    "sched:sched_switch": "",  # each is one of the switches too
    "switches": "switches",
    "sched:sched_waking": "wake-ups",
    "sched:sched_wakeup": "",
    "sched:sched_wakeup_new": "new threads",
    "sched:sched_migrate_task": "migrations",
    "raw_syscalls:sys_enter": "system calls",
    "raw_syscalls:sys_exit": "",
    "irq:irq_handler_entry": "interrupts",
    "irq:irq_handler_exit": "",
    "irq:softirq_entry": "soft interrupts",
    "irq:softirq_exit": "",
    "page-faults": "page faults",
}


def trace_report(record: Mapping[str, Any], folder: Path, study: Path) -> Iterator[str]:
    """The lines."""
    if record.get("status") != "measured":
        yield f"The launch failed: {record.get('reason') or 'it left no record'} (below {folder / 'logs'})."
        return
    lead = record.get("members", {}).get(record.get("lead"), {})
    for scene in record.get("scenes", ()):
        yield from _scene(scene, lead)
    if apart := [source["alignment_ns"] for source in record.get("sources", ()) if source.get("alignment_ns")]:
        yield f"  clocks agree within {max(apart) / 1e3:.1f} µs"
    if sentences := lacking(record):
        yield "  missing:"
        yield from (f"    - {words}" for words in sentences)
    yield f"trace: {folder}"
    if (folder / OPENED).is_file():
        yield f"  look at it:  {folder / OPENED} in a browser"
    name = str(record.get("mix")) + (f"@{part}" if (part := record.get("partition")) != "unmanaged" else "")
    yield f'  ask it:      castmates trace query {study} {name} "SELECT …"'


def _scene(scene: Mapping[str, Any], lead: Mapping[str, Any]) -> Iterator[str]:
    """What one recording holds."""
    seconds = (scene["t1_ns"] - scene["t0_ns"]) / 1e9
    round_ = f", recording {scene['round']}" if scene["round"] > 1 else ""
    yield f"{scene['scene']}{round_}: {seconds:.1f} s recorded{_rate(scene, lead)}"
    sources = scene.get("sources", ())
    for source in sources:
        if not source["reason"] and (kinds := ", ".join(_kinds(source["events"]))):
            yield f"  {source['name']:10} {kinds}{_lost(source)}{_early(source)}{_checked(source)}"
    for reason, names in by_reason((source["name"], source["reason"]) for source in sources):
        yield f"  without {names}: {reason}"


def _rate(scene: Mapping[str, Any], lead: Mapping[str, Any]) -> str:
    on, off = scene.get("rate_on"), scene.get("rate_off")
    if not on or not off:
        return "; the lead made too few steps to compare its rate"
    unit = lead.get("unit") or "step"
    loss = f"{100 * (off / on - 1):+.1f} % time for each"
    return f"; the lead makes {on:,.4g} {unit}s a second while recorded, {off:,.4g} right before and after ({loss})"


def _kinds(events: Mapping[str, int]) -> Iterator[str]:
    """What was recorded, in words where perf's are longer; the ends of what has a begin are left out."""
    for kind, count in events.items():
        if (words := KINDS.get(kind.partition("/")[0].partition(":u")[0], kind)) and count:
            yield f"{count:,} {words}"


def _checked(source: Mapping[str, Any]) -> str:
    """Whether steps of the framework agree with the heartbeats that the same program wrote."""
    check = source.get("alignment checked")
    if not check or not check["with_heartbeat"]:
        return ""
    lag = check["lag_ns"]
    apart = max(abs(lag["least"]), abs(lag["most"])) / 1e3
    return (
        f"; {check['in_order']} of {check['with_heartbeat']} steps have their heartbeat nearest to their own end; "
        f"at most {apart:.0f} µs apart"
    )


def _lost(source: Mapping[str, Any]) -> str:
    return f"; {source['lost']:,} events lost" if source["lost"] else ""


def _early(source: Mapping[str, Any]) -> str:
    return f"; ended early: {source['ended early']}" if source.get("ended early") else ""
