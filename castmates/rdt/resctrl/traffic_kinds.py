"""Which kinds of memory traffic events count, where that can be chosen: AMD's BMEC, or counters that are assigned."""

from collections.abc import Iterable

from castmates.rdt.resctrl.tree import Tree

INFO = "info/L3_MON"
PLACES = ("{event}_config", "event_configs/{event}/event_filter")  # bits by domain; names of kinds


def traffic_kinds(tree: Tree, events: Iterable[str]) -> str:
    """What each event counts, `mbm_total_bytes 0x7f`; by domain where domains differ; "" where none can be chosen."""
    found = {event: _kinds(tree, event) for event in sorted(events)}
    return "; ".join(f"{event} {kinds}" for event, kinds in found.items() if kinds)


def _kinds(tree: Tree, event: str) -> str:
    for place in PLACES:
        try:
            text = tree.read(f"{INFO}/{place.format(event=event)}").strip()
        except OSError:
            continue
        bits = {part.partition("=")[2] for part in text.split(";")}
        return bits.pop() if len(bits) == 1 and "=" in text else text
    return ""
