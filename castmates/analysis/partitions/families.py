"""Partitions of one kind: what they are called without the number of the lead's ways."""

import re


def family_of(partition: str, lead_ways: int) -> str:
    """`split-4-high` with 4 ways is of `split-high`; a name without its number of ways is a family of its own."""
    # The study's own name of the sweep stands first and may hold numbers too, and a position may stand last.
    found = [*re.finditer(rf"(?:split|lead)(-{lead_ways})(?=-|$)", partition)]
    found = found or [*re.finditer(rf"(-{lead_ways})(?=-|$)", partition)]
    return partition[: found[-1].start(1)] + partition[found[-1].end(1) :] if found else partition
