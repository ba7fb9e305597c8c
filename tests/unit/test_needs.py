"""What a machine lacks skips a test, and fails it where the machine should have it."""

import pytest

from castmates.workloads.native import build
from tests import needs


@pytest.fixture
def nothing_here(monkeypatch):
    monkeypatch.setattr(needs, "why_not", lambda name: f"no {name} today")


def test_what_is_missing_skips_with_its_reason(nothing_here, monkeypatch):
    monkeypatch.setattr(needs, "INSISTED", frozenset({"root"}))
    with pytest.raises(pytest.skip.Exception, match="no perf today"):
        needs.insist("perf")


def test_what_is_missing_fails_where_it_is_insisted_on(nothing_here, monkeypatch):
    monkeypatch.setattr(needs, "INSISTED", frozenset({"perf"}))
    with pytest.raises(pytest.fail.Exception, match="insists on perf, but: no perf today"):
        needs.insist("perf")


def test_what_is_here_goes_on(monkeypatch):
    monkeypatch.setattr(needs, "why_not", lambda _: "")
    needs.insist("perf", "root")


@pytest.mark.parametrize("name", needs.CAPABILITIES)
def test_every_capability_answers(name):
    assert isinstance(needs.why_not(name), str)


def test_a_name_that_nobody_knows_is_a_mistake():
    assert needs.unknown({"root", "perv"}) == {"perv"}


def test_without_a_compiler_the_one_that_was_fetched_is_used(monkeypatch):
    fetched = ["python", "-m", "zig of a folder"]
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(build, "_compiles", lambda compiler, _: compiler == fetched)
    monkeypatch.setattr(needs, "_fetched_compiler", list)
    assert "make compilers" in needs.CAPABILITIES["compiler"]()
    monkeypatch.setattr(needs, "_fetched_compiler", lambda: fetched)
    assert needs.CAPABILITIES["compiler"]() == ""
    assert build.find_compiler() == fetched
