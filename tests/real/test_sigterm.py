"""SIGTERM, as `timeout` and CI send it, ends the tests and not one test."""

from pathlib import Path

import pytest

from tests.plugins.sigterm import ENDED

PROJECT = Path(__file__).parents[2]
PLAIN = "os.kill(os.getpid(), signal.SIGTERM); signal.pause()"
HANDLED = """
    with measure_launch._signals_raise():
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
"""
SWALLOWED = """
    signal.signal(signal.SIGTERM, lambda *_: None)
    os.kill(os.getpid(), signal.SIGTERM)
"""
CHILD = """
    ready, begun = os.pipe()
    if (child := os.fork()) == 0:
        os.write(begun, b"x")
        signal.pause()
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    assert os.waitpid(child, 0)[1] == signal.SIGTERM
"""


@pytest.mark.parametrize(
    ("body", "ends"), [(PLAIN, True), (HANDLED, True), (SWALLOWED, True), (CHILD, False), ("pass", False)]
)
def test_it_ends_the_run_and_fixtures_are_torn_down(pytester, monkeypatch, body, ends):
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(
        f"""
import os, pathlib, signal
import pytest
from castmates.pipeline import measure_launch

@pytest.fixture(autouse=True)
def torn_down():
    yield
    pathlib.Path("torn-down").touch()

def test_first():
    {body}

def test_second():
    pathlib.Path("went-on").touch()
"""
    )
    done = pytester.runpytest_subprocess("-p", "tests.plugins.sigterm", "-p", "no:cacheprovider")
    assert (done.ret == ENDED) is ends
    assert (pytester.path / "went-on").exists() is not ends
    assert (pytester.path / "torn-down").exists()
    assert ("SIGTERM came" in done.stdout.str() + done.stderr.str()) is ends
