"""Partitions of one kind: what they are called without the number of the lead's ways."""

import re


def family_of(partition: str, lead_ways: int) -> str:
    """`split-4-high` with 4 ways is of `split-high`; a name without its number of ways is a separate family."""
    # The study's own name of the sweep stands first and may hold numbers too, and a position may stand last.
    matches = [*re.finditer(rf"(?:split|lead)(-{lead_ways})(?=-|$)", partition)]
    matches = matches or [*re.finditer(rf"(-{lead_ways})(?=-|$)", partition)]
    return partition[: matches[-1].start(1)] + partition[matches[-1].end(1) :] if matches else partition
