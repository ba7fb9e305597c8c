"""Faults that were planted once are noticed still: those of tests/faults, each by the tests that its patch names."""

import subprocess
from difflib import unified_diff

import pytest

from tests.faults.__main__ import Fault, copy_of_tree, faults, main, verdict

HEAD = "Nothing is wrong\nTests: tests/unit/test_kinds.py\n\n"
FILE = "castmates/extras.py"


@pytest.mark.nightly
def test_every_planted_fault_is_noticed():
    assert main() == 0


def test_every_patch_applies_and_names_what_is_wrong_and_tests_that_are_there(request):
    for fault in faults():
        assert fault.what[0].isupper()
        assert all((request.config.rootpath / test.partition("::")[0]).exists() for test in fault.tests), fault.file
        subprocess.run(["git", "apply", "--check", str(fault.file)], cwd=request.config.rootpath, check=True)


@pytest.mark.parametrize("applies", [True, False])
def test_what_nobody_notices_and_what_does_not_apply_is_no_good(tmp_path, applies):
    (tree := tmp_path / "tree").mkdir()
    lines = (copy_of_tree(tree) / FILE).read_text().splitlines(keepends=True)
    there = lines if applies else ["something else\n", *lines[1:]]
    patch = tmp_path / "N1.patch"
    patch.write_text(HEAD + "".join(unified_diff(there, ["# planted\n", *there], f"a/{FILE}", f"b/{FILE}")))
    good, words = verdict(Fault.read(patch), tree)
    assert not good
    assert words.startswith("GOES UNNOTICED" if applies else "does not apply any more")
