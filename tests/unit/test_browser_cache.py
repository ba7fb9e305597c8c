"""The unpacked Chromium is used where it starts, and nothing of a fetch that was broken off is used again."""

import pytest

from tests.browser import chromium
from tests.lab.kit.common import NoLab


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTMATES_BROWSER_CACHE", str(tmp_path))
    monkeypatch.setattr(chromium, "INSTALLED", ())
    return tmp_path


@pytest.mark.parametrize(("status", "usable"), [(0, True), (127, False)])
def test_an_unpacked_one_that_does_not_start_is_not_there(cache, status, usable):
    run = cache / "chromium/run"
    assert chromium.here() is None
    run.parent.mkdir()
    run.write_text(f"#!/bin/sh\nexit {status}\n")
    run.chmod(0o755)
    assert chromium.here() == (run if usable else None)


def test_packages_of_a_broken_fetch_are_forgotten(cache, monkeypatch):
    old = cache / "debian/packages/chromium_1_amd64.deb"
    old.parent.mkdir(parents=True)
    old.touch()
    seen = []

    def update(packages):
        seen.append(list(packages.folder.glob("**/*.deb")))
        raise NoLab("there is no network")

    monkeypatch.setattr(chromium, "unfit", lambda _: None)
    monkeypatch.setattr(chromium.Debian, "update", update)
    with pytest.raises(NoLab):
        chromium.fetch(lambda _: None)
    assert seen == [[]]
