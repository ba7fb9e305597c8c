"""No tier grows beyond its time unseen: tests/durations.json is what `make durations` measured on a quiet machine."""

import json

import pytest

from tests.kinds import KINDS, kind_of
from tests.plugins.durations import FILE, TIERS, tier_of

# Seconds of a tier on two quiet cores, and how many of its tests run at a time. What `make test` and `make test-all`
# contain of the tiers below them is counted too; lint takes half a minute.
LINT = 30
BUDGETS = {"check": 6 * 60 - LINT, "test": 11 * 60, "all": 60 * 60 - LINT}
AT_ONCE = {"check": 2, "test": 1, "all": 1}
UNKNOWN = 1.0  # seconds of a file that has not been measured yet


def seconds_of(tier, durations):
    """Return what the tests of this tier take, and of those below that it contains."""
    below = TIERS[: TIERS.index(tier) + 1]
    return sum(sum(durations.get(one, {}).values()) / AT_ONCE[one] for one in below)


def unmeasured(durations):
    """Return the files that have no duration yet, with the same second for each, by tier."""
    root, known = FILE.parents[1], {file for files in durations.values() for file in files}
    found = {}
    for file in sorted(str(one.relative_to(root)) for kind in KINDS for one in (FILE.parent / kind).rglob("test_*.py")):
        if file not in known:
            found.setdefault(tier_of({kind_of(file)}), {})[file] = UNKNOWN
    return found


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_stays_within_its_time(tier):
    durations = json.loads(FILE.read_text())
    assert seconds_of(tier, durations) + seconds_of(tier, unmeasured(durations)) <= BUDGETS[tier], (
        f"the tests of `{tier}` take too long: make them quicker, or move some to a later tier; where this is not so "
        "any more, `make durations` measures it anew"
    )


@pytest.mark.parametrize(
    ("marks", "tier"),
    [
        ({"pure"}, "check"),
        ({"real"}, "test"),
        ({"sweep", "core"}, "test"),
        ({"sweep"}, "all"),
        ({"real", "tensorflow"}, "all"),
        ({"real", "landing"}, "all"),
        ({"pure", "simulation"}, "all"),
        ({"lab"}, "all"),
        ({"pure", "nightly"}, None),
        ({"real", "nightly"}, None),
    ],
)
def test_the_first_tier_of_a_test(marks, tier):
    assert tier_of(marks) == tier


def test_a_tier_contains_those_below():
    durations = {"check": {"a": 20.0}, "test": {"b": 5.0}, "all": {"c": 1.0}}
    assert [seconds_of(tier, durations) for tier in TIERS] == [10.0, 15.0, 16.0]
