"""Faults that were planted once are noticed still: those of tests/faults, each by the tests that its patch names."""

import pytest

from tests.faults.__main__ import faults, main


@pytest.mark.nightly
def test_every_planted_fault_is_noticed():
    assert main() == 0


def test_every_patch_names_what_is_wrong_and_tests_that_are_there(request):
    for fault in faults():
        assert fault.what[0].isupper()
        assert all((request.config.rootpath / test.partition("::")[0]).exists() for test in fault.tests), fault.file
