"""The sweep of masks on processors at fault: what its ledger, the registers and its page show of each.

`castmates doctor --verify-rdt` has a test of its own (test_verify_rdt.py). docs/rdt.md has a table of both, which
tests/unit/rdt/test_proofs.py compares.
"""

from collections import Counter
from dataclasses import replace

import pytest

from tests.lab.shapes import FAULTS, SHAPES
from tests.lab.swept import OTHER, sweep

# By fault: what rejected most windows; what the partitions held by registers and occupancy; what the throttled lost;
# what is recommended.
EXPECTED = {
    "leak": ("", "beyond: lead-2, split-3, split-4, split-5", "", "not met split-5"),
    "ahead": ("", "as asked: split-4; beyond: lead-2, split-3, split-5", "", "not needed "),
    "policy": ("not emptied", "as asked: lead-2, split-3, split-4, split-5", "", ""),
    "slack": (
        "",
        "as asked: split-5, split-5-antagonists-mb40, split-5-antagonists-mb80",
        "no loss, no loss",
        "knee split-5",
    ),
    "steep": (
        "",
        "as asked: split-5, split-5-antagonists-mb40; otherwise: split-5-antagonists-mb80",
        "loss, loss",
        "knee split-5",
    ),
    "blind": ("", "as asked: lead-2, split-3, split-4, split-5", "", "knee split-5"),
    "tied": ("", "as asked: split-5; otherwise: split-11", "", "knee split-5"),
}
THROTTLES = [{"split": 5}, {"split": 5, "bandwidth": {"antagonists": ["80%", "40%"]}}]
MASKS = [{"split": [3, 4, 5]}, {"lead_ways": [2]}]
# A fault of throttles shows under throttles, and ways that are tied where a mask has some of them.
SWEEPS = {"slack": THROTTLES, "steep": THROTTLES, "tied": [{"split": [5, 11]}]}


def changes(name):
    """What of the study is another one for this fault."""
    return {"seed": 1, "cache": {"sweeps": SWEEPS.get(name, MASKS), "monitor": 10}}


def aside(lab):
    """Run the sweeps, each in a guest."""
    shape = SHAPES["server"]
    return {
        name: sweep(lab, replace(shape, rdt=f"{shape.rdt},{FAULTS[name]}"), "root", changes(name)) for name in EXPECTED
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sweep_on_a_processor_at_fault_shows_it_where_it_can(beside, name):
    swept = beside[name]
    assert swept.code == 0, swept.told
    assert shown(swept) == EXPECTED[name]


def shown(swept):
    """What a sweep shows: in its ledger, of the processor, by the antagonist's throttles, and as its recommendation."""
    rejected = Counter(kind for row in swept.windows.reason_kinds for kind in row.split("; ") if kind)
    effects = swept.results.effects
    held = effects[effects.held != ""].groupby("held").partition.unique()
    throttled = effects[effects.partition.str.contains("-mb") & (effects.member == OTHER)].sort_values("partition")
    advice = [f"{row.verdict} {row.partition}" for row in swept.results.recommendations.itertuples()]
    return (
        ", ".join(sorted(kind for kind, windows in rejected.items() if windows > len(swept.windows) / 2)),
        "; ".join(f"{state}: {', '.join(sorted(names))}" for state, names in sorted(held.items())),
        ", ".join(throttled.verdict),
        "; ".join(advice),
    )
