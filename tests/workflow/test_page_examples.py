"""The tutorial and the case study print what their pages show: every command is run."""

import pytest

from docs_site import examples

pytestmark = pytest.mark.nightly  # it runs three studies


def test_the_examples_of_the_pages_are_fresh():
    for file, text in examples.renewed():
        assert text == file.read_text(encoding="utf-8"), "run `make examples`"
