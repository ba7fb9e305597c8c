"""The second run of unsteady tests: who gets one, with which seed, and what is noted."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.landing
PROJECT = Path(__file__).parents[2]
ONCE = """
import os
from pathlib import Path
def test_{name}():
    count = Path("{name}.runs")
    seeds = count.read_text().split() if count.exists() else []
    count.write_text(" ".join([*seeds, os.environ.get("CASTMATES_SEED", "none")]))
    assert len(seeds) >= {failures}
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run tests of these kinds, each of which fails so many times, and return what pytest came to."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.delenv("CASTMATES_SEED", raising=False)
    pytester.makeini("[pytest]\n")

    def run(tests: dict[str, int], *options: str):
        for test, failures in tests.items():
            folder, name = test.split("/")
            file = pytester.path / "tests" / folder / f"test_{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(ONCE.format(name=name, failures=failures))
        # The project's own `tests` must be found, though the folder here has the same name.
        options = ("--import-mode=importlib", "-p", "tests.plugins.unsteady", "-p", "no:cacheprovider", *options)
        monkeypatch.setenv("PYTEST_ADDOPTS", "--import-mode=importlib")
        return pytester.runpytest_subprocess(*options)

    return run


def runs_of(pytester, name: str) -> list[str]:
    return (pytester.path / f"{name}.runs").read_text().split()


def noted(pytester) -> list[dict]:
    file = pytester.path / "unsteady.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_what_fails_once_is_green_counted_and_noted(run, pytester):
    result = run({"runner/once": 1, "runner/never": 0}, "--once-more")
    assert result.ret == 0
    assert result.outlines[-1].startswith("green, 1 unsteady: tests/runner/test_once.py::test_once")
    assert runs_of(pytester, "once") == ["none", "1"], "the second run was given the seed of the first, which is 1"
    (entry,) = noted(pytester)
    assert entry["test"] == "tests/runner/test_once.py::test_once"
    assert entry["again"] == "passed"
    assert "assert 0 >= 1" in entry["first"]
    assert entry["seed"] == 1
    assert {"load", "commit", "when"} <= set(entry)


def test_what_fails_twice_is_red(run, pytester):
    result = run({"workflow/twice": 2, "runner/once": 1}, "--once-more")
    assert result.ret == 1
    assert result.outlines[-1] == "red: 1 of 2 failed twice"
    assert len(runs_of(pytester, "twice")) == 2
    assert sorted(entry["again"] for entry in noted(pytester)) == ["failed", "passed"]


def test_a_pure_test_never_runs_again(run, pytester):
    result = run({"unit/once": 1, "runner/other": 1}, "--once-more")
    assert result.ret == 1
    assert result.outlines[-1] == "red: 2 failed, 1 of them pure, which never run again"
    assert [len(runs_of(pytester, name)) for name in ("once", "other")] == [1, 1]
    assert noted(pytester) == []


@pytest.mark.parametrize(("failing", "code"), [(3, 0), (4, 1)])
def test_three_of_a_run_at_most(run, pytester, failing, code):
    result = run({f"real/once{number}": 1 for number in range(failing)}, "--once-more")
    assert result.ret == code
    assert len(noted(pytester)) == (failing if code == 0 else 0)


def test_the_failures_of_parallel_workers_run_again_too(run, pytester):
    result = run({"real/first": 1, "real/second": 1, "real/third": 0}, "--once-more", "-n", "2")
    assert result.ret == 0
    assert result.outlines[-1].startswith("green, 2 unsteady")


def test_nothing_runs_again_where_nobody_asked(run, pytester):
    assert run({"runner/once": 1}).ret == 1
    assert len(runs_of(pytester, "once")) == 1


def test_a_quiet_run_is_green(run):
    assert run({"runner/fine": 0}, "--once-more").outlines[-1] == "green"


def test_a_second_run_that_is_skipped_is_no_pass(run, pytester):
    folder = pytester.path / "tests" / "runner"
    folder.mkdir(parents=True)
    text = ONCE.format(name="skips", failures=1).replace("    assert len", "    import pytest\n    assert len")
    (folder / "test_skips.py").write_text(f"{text}    pytest.skip('not here')\n")
    result = run({}, "--once-more")
    assert result.ret == 1
    assert [entry["again"] for entry in noted(pytester)] == ["failed"]
