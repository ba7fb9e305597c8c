"""Where a test is decides its kind; every folder of tests has one."""

import re
from pathlib import Path

import pytest

from tests.kinds import KINDS, kind_of

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("test", "kind"),
    [
        ("tests/unit/test_words.py::test_x[a/b]", "pure"),
        ("tests/unit/rdt/test_places.py::test_x", "pure"),
        ("tests/real/test_child.py::test_x", "real"),
        ("tests/lab/test_sweep.py", "lab"),
    ],
)
def test_the_folder_is_the_kind(test, kind):
    assert kind_of(test) == kind


def test_every_folder_with_tests_has_a_kind():
    assert {file.relative_to(HERE).parts[0] for file in HERE.rglob("test_*.py")} == set(KINDS)


def test_make_names_every_folder_with_processes():
    (named,) = re.findall(r"^PROCESSES := (.*)$", (HERE.parent / "Makefile").read_text(), re.MULTILINE)
    folders = {f"tests/{folder}" for folder, kind in KINDS.items() if kind not in ("pure", "slurm")}  # make test-slurm
    assert set(named.split()) == folders
