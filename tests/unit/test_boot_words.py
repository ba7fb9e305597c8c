"""`rdt=` on the kernel's command line, as set_rdt_options() and rdt_cpu_has() read it."""

import pytest

from castmates.machine.probes import change, switches


@pytest.mark.parametrize(
    ("line", "word", "state"),
    [
        (None, "l3cat", None),
        ("quiet ro", "l3cat", None),
        ("rdt=!l3cat", "l3cat", False),
        ("rdt=l3cat", "l3cat", True),
        ("ro rdt=cmt,!l3cat quiet", "l3cat", False),
        ("ro rdt=cmt,!l3cat quiet", "cmt", True),
        ("rdt=!l3cat,l3cat", "l3cat", True),  # on wins
        ("rdt=l3cat rdt=!l3cat", "l3cat", True),  # in whatever order
        ("rdt=!mba rdt=cmt", "mba", False),  # each word counts
        ("rdt=l3catx,,!", "l3cat", None),  # what the kernel does not know
        ("ordt=!l3cat", "l3cat", None),
        ("ro -- rdt=!l3cat", "l3cat", None),  # meant for init
    ],
)
def test_on_and_off(line, word, state):
    assert switches(line).state(word) is state


@pytest.mark.parametrize(
    ("line", "allow", "force", "sentence"),
    [
        ("quiet", ["l3cat"], ["l3cat"], "add rdt=l3cat to the kernel's command line and restart"),
        ("", [], ["l3cat", "cmt"], "add rdt=l3cat,cmt to the kernel's command line and restart"),
        (
            "rdt=cmt ro",
            ["l3cat"],
            ["l3cat"],
            "put rdt=cmt,l3cat in place of rdt=cmt on the kernel's command line and restart",
        ),
        (
            "rdt=!l3cat,!mba",
            ["l3cat"],
            ["l3cat"],
            "put rdt=!mba,l3cat in place of rdt=!l3cat,!mba on the kernel's command line and restart",
        ),
        ("rdt=!mba", ["mba"], [], "remove rdt=!mba from the kernel's command line and restart"),
        (
            "rdt=!mba rdt=!l3cat",
            ["mba"],
            [],
            "put rdt=!l3cat in place of rdt=!mba rdt=!l3cat on the kernel's command line and restart",
        ),
    ],
)
def test_what_to_change(line, allow, force, sentence):
    assert change(line, allow, force) == sentence
