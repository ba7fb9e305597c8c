"""Durations, percentages, counts and lists have one form, whoever writes them."""

import math

from castmates import english
from castmates.terminal.preview.duration import minutes_between
from castmates.terminal.words import about

DURATIONS = {0.2: "1 s", 85: "85 s", 90: "2 min", 5400: "1 h 30 min", 7200: "2 h", 7322: "2 h 2 min"}
PER_CENT = {45.5: "46 %", 9.94: "9.9 %", 9.96: "10 %", 0.04: "0 %", 5.0: "5 %", -3.2: "−3.2 %", math.inf: "none found"}
SIZES = {0: "0 B", 999: "999 B", 1_000: "1 kB", 1_500_000: "2 MB", 999_400_000: "999 MB", 999_600_000: "1.0 GB"}
SIZES |= {5.04e9: "5.0 GB"}
BETWEEN = {
    (240, 300): "4 to 5 min", (50, 120): "50 s to 2 min", (5400, 9000): "1 h 30 min to 2 h 30 min",
    (3600, 7800): "60 min to 2 h 10 min", (7200, 10800): "2 to 3 h",
}  # fmt: skip


def test_durations_percentages_and_sizes():
    """What two durations share stands once, and nothing is ambiguous."""
    for seconds, text in DURATIONS.items():
        assert english.duration(seconds) == minutes_between(seconds, seconds) == about(seconds) == text
    assert {ends: minutes_between(*ends) for ends in BETWEEN} == BETWEEN
    assert {value: english.percent(value) for value in PER_CENT} == PER_CENT
    assert {amount: english.size(amount) for amount in SIZES} == SIZES


def test_counts_and_lists():
    assert [english.counted(n, "launch") for n in (0, 1, 2)] == ["0 launches", "1 launch", "2 launches"]
    assert english.counted(2, "mix") == "2 mixes"
    assert [english.listed(list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
