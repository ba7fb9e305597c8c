"""Whether the memory traffic (MBM) of two studies is the same quantity: processors count different things as such."""

import re
from collections.abc import Iterator

from castmates.report.comparison.differences import SetUp
from castmates.report.text.words import listed

VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}
# What a processor counts as traffic, as kernel and manuals have it (Documentation/filesystems/resctrl.rst).
COUNTED = {
    "AMD": "an AMD processor counts what its BMEC bits name, and by default also dirty lines that leave the cache and "
    "non-temporal writes",
    "Hygon": "a Hygon processor counts as AMD's do",
    "Intel": "an Intel processor counts what its last-level cache exchanges with memory",
    "Arm": "an Arm processor counts what its memory-bandwidth monitor is set to",
}
TRAFFIC = re.compile(r"\bmbm_(total|local)_bytes\b")


def other_traffic(a: SetUp, b: SetUp, letter: str) -> Iterator[str]:
    """Why traffic in A is another quantity than in the other study; nothing where it is the same, or not known."""
    if not (_counts(a) and _counts(b)):
        return
    ours, theirs = _vendor(a), _vendor(b)
    if ours and theirs and ours != theirs:
        kinds = [COUNTED.get(vendor, f"what a processor of {vendor} counts is not known") for vendor in (ours, theirs)]
        yield (
            f"Memory traffic (MBM) was counted by {_a(ours)} processor in A and by {_a(theirs)} one in {letter}, so "
            f"totals are not the same quantity: {listed(kinds)}. Compare changes inside each study."
        )
    elif (bits := (_configured(a), _configured(b))) and bits[0] != bits[1]:
        told = [words or "as the hardware is set by default" for words in bits]
        yield (
            f"Memory traffic (MBM) was counted with other BMEC bits in A ({told[0]}) than in {letter} ({told[1]}), so "
            "totals are not the same quantity."
        )


def _counts(side: SetUp) -> bool:
    return any(TRAFFIC.search(record.monitored) for record in side.records)


def _configured(side: SetUp) -> str:
    """Which kinds of traffic the events were set to count; "" where that cannot be chosen."""
    return "; ".join(sorted({record.traffic_kinds for record in side.records} - {""}))


def _vendor(side: SetUp) -> str:
    processor = side.machine.processor
    known = VENDORS.get(processor.vendor or "", processor.vendor or "")
    return known or ("Arm" if processor.implementer else "")


def _a(vendor: str) -> str:
    return f"{'an' if vendor[0] in 'AEIOU' else 'a'} {vendor}"
