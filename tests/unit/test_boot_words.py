"""`rdt=` on the kernel's command line, as set_rdt_options() and rdt_cpu_has() read it."""

from castmates.machine.probes import change, switches
from tests.unit.snapshots import assert_as_before

STATES = {
    (None, "l3cat"): None,
    ("quiet ro", "l3cat"): None,
    ("rdt=!l3cat", "l3cat"): False,
    ("rdt=l3cat", "l3cat"): True,
    ("ro rdt=cmt,!l3cat quiet", "l3cat"): False,
    ("ro rdt=cmt,!l3cat quiet", "cmt"): True,
    ("rdt=!l3cat,l3cat", "l3cat"): True,  # on wins
    ("rdt=l3cat rdt=!l3cat", "l3cat"): True,  # in whatever order
    ("rdt=!mba rdt=cmt", "mba"): False,  # each word counts
    ("rdt=l3catx,,!", "l3cat"): None,  # what the kernel does not know
    ("ordt=!l3cat", "l3cat"): None,
    ("ro -- rdt=!l3cat", "l3cat"): None,  # meant for init
}


def test_on_and_off():
    assert {(line, word): switches(line).state(word) for line, word in STATES} == STATES


CHANGES = (
    ("quiet", ["l3cat"], ["l3cat"]),
    ("", [], ["l3cat", "cmt"]),
    ("rdt=cmt ro", ["l3cat"], ["l3cat"]),
    ("rdt=!l3cat,!mba", ["l3cat"], ["l3cat"]),
    ("rdt=!mba", ["mba"], []),
    ("rdt=!mba rdt=!l3cat", ["mba"], []),
)


def test_what_to_change():
    said = {f"{line}: allow {allow}, force {force}": change(line, allow, force) for line, allow, force in CHANGES}
    assert_as_before("boot-words", said)
