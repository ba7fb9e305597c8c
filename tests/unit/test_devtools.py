"""The driver of the browser leaves nothing behind where the browser does not start, or what uses it fails."""

import sys
from pathlib import Path

import pytest

from tests.browser.devtools import Browser

OBEDIENT = [sys.executable, "-c", "import os; os.read(3, 1000)"]  # ends at the first word sent to it


def open_files():
    return {end.name for end in Path("/proc/self/fd").iterdir()}


def test_it_ends_with_its_launch_whatever_happens_there(tmp_path):
    before = open_files()
    with pytest.raises(KeyError), Browser(OBEDIENT, tmp_path, {}) as browser:
        raise KeyError
    assert browser.process.returncode == 0
    assert open_files() == before


def test_where_it_cannot_be_started_no_pipe_stays_open(tmp_path):
    before = open_files()
    with pytest.raises(FileNotFoundError):
        Browser(OBEDIENT, tmp_path / "missing", {})
    with pytest.raises(ValueError, match="null byte"):
        Browser(["true\0"], tmp_path, {})
    assert open_files() == before
