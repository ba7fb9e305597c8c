"""The fake answers as real kernels did: every line of every transcript is replayed, or is listed here with a reason."""

import pytest

from castmates.rdt.fake import LAB_ALLOCATION_ONLY, LAB_MONITORING_ONLY, LAB_NO_THROTTLE, NO_RDT, V6_1, V6_12, V7_2
from tests.unit.rdt.reference_script import DATES, MACHINE, PROCESSES, Reference
from tests.unit.rdt.replay import BLANK, DATA, MADE_UP
from tests.unit.rdt.short_scripts import PQOS, Mix, Other

SCRIPTS = {
    "ref-6.1": lambda: Reference("ref-6.1", V6_1),
    "ref-6.12": lambda: Reference("ref-6.12", V6_12),
    "ref-7.2": lambda: Reference("ref-7.2", V7_2),
    "no-mba": lambda: Other("no-mba", LAB_NO_THROTTLE),
    "cat-only-11way": lambda: Other("cat-only-11way", LAB_ALLOCATION_ONLY),
    "cmt-only": lambda: Other("cmt-only", LAB_MONITORING_ONLY),
    "no-rdt": lambda: Other("no-rdt", NO_RDT),
    "mix-6.1": Mix,
}
# Operations replayed; other lines compared (shell commands, their output, notes); lines that are not compared, and why.
REPLAYED = {
    "ref-6.1": (257, 253, {MACHINE: 28, DATES: 2, PROCESSES: 2, MADE_UP: 8, BLANK: 38}),
    "ref-6.12": (257, 258, {MACHINE: 27, DATES: 2, PROCESSES: 2, MADE_UP: 8, BLANK: 38}),
    "ref-7.2": (257, 261, {MACHINE: 27, DATES: 2, PROCESSES: 2, MADE_UP: 8, BLANK: 38}),
    "no-mba": (36, 48, {MACHINE: 6, BLANK: 4}),
    "cat-only-11way": (36, 36, {MACHINE: 5, BLANK: 4}),
    "cmt-only": (22, 31, {MACHINE: 5, BLANK: 2}),
    "no-rdt": (0, 6, {MACHINE: 4, BLANK: 2}),
    "mix-6.1": (0, 46, {PQOS: 83}),
}
NOT_REPLAYED = {
    "pqos-6.1": "records what pqos says and does; its effects on groups are in mix-6.1",
}


def test_every_transcript_has_a_script_or_a_reason():
    assert {file.stem for file in DATA.glob("*.txt")} == SCRIPTS.keys() | NOT_REPLAYED.keys()


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_fake_answers_as_the_kernel_did(name):
    replay = SCRIPTS[name]().run()
    assert (replay.operations, replay.compared, dict(replay.skipped)) == REPLAYED[name]
    assert replay.operations + replay.compared + replay.skipped.total() == len(replay.lines)
