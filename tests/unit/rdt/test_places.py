"""The places of tasks are read as the kernel writes them."""

import pytest

from castmates.rdt.resctrl.foreign import UNMOUNTED, Place, parse_place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("res:/\nmon:\n", Place("", "")),
        ("res:g1\nmon:\n", Place("g1", "")),
        ("res:g1\nmon:m1\n", Place("g1", "m1")),
        ("res:/\nmon:m1\n", Place("", "m1")),
        ("res:\nmon:\n", Place(UNMOUNTED, "")),
    ],
)
def test_places(text, place):
    assert parse_place(text) == place
