"""Two processes that want the same packages: one fetches, the other waits and takes what it finds."""

import threading

import pytest

from tests.lab.kit.alone import alone
from tests.runner import twin_packages


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTMATES_TWINS_CACHE", str(tmp_path / "twins"))
    monkeypatch.setattr(twin_packages, "unfit", lambda _: None)
    return tmp_path / "twins"


def test_who_waits_for_a_fetch_does_not_repeat_it(cache, monkeypatch):
    fetched, waiting, said = [], threading.Event(), []

    def say(word):
        said.append(word)
        waiting.set()

    monkeypatch.setattr(twin_packages, "lacking", lambda: [] if fetched else ["gnugo"])
    monkeypatch.setattr(twin_packages, "_fetch", lambda _: fetched.append("again"))
    second = threading.Thread(target=twin_packages.fetch, args=[say])
    with alone(cache, print):
        second.start()
        assert waiting.wait(60)
        fetched.append("by the first")
    second.join(60)
    assert fetched == ["by the first"]
    assert said == [f"Waiting for another process that fills {cache}"]


def test_a_fetch_that_failed_is_taken_up_by_who_waited(cache, monkeypatch):
    fetched = []
    monkeypatch.setattr(twin_packages, "lacking", lambda: [] if fetched else ["gnugo"])
    monkeypatch.setattr(twin_packages, "_fetch", lambda _: fetched.append("once"))
    with pytest.raises(ZeroDivisionError), alone(cache, print):
        raise ZeroDivisionError
    twin_packages.fetch(print)
    assert fetched == ["once"]
