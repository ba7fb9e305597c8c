"""Finished sweeps, one for each shape of study, which the tests look at, or copy and go on from."""

import fcntl
import os
import shutil

import pytest

from tests.needs import insist
from tests.workflow.sweeps import Sweeps

# What the tests of a modelled study and of its confirmation both look at.
MODELLED = {
    "platform": "modelled",
    "antagonists": ["stream"],
    "cache": {"sweeps": [{"split": [4, 10]}, {"lead_ways": 4}]},
    "recommend": {"lead_loss": "25%"},
    "budget": {"launches": 3, "rounds": 2, "window": 0.2, "settle": 0.1, "longest_launch": 3600},
}


# Its antagonists sit in several places, some mixes are drawn, and things are tried against a loss: all has tables.
ARRANGED = {
    "platform": "modelled",
    "model": {"threads": 2, "sockets": 2, "domains": 2},
    "leads": ["chase"],
    "antagonists": [],
    "mixes": {
        "random": {"count": 3, "from": ["stream", "compute", "chase-in-cache"]},
        "list": [
            {"lead": "chase", "antagonists": ["stream"], "distance": ["smt", "other-socket"], "count": [1, 2]},
            {"lead": "chase", "antagonists": ["compute"], "share": {"cpus": "lead", "quota": "50%"}},
        ],
    },
    "mitigations": [{"lead": "chase", "antagonists": ["stream"], "distance": "smt", "kinds": ["core", "quota"]}],
    "budget": MODELLED["budget"],
}


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder that all workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def cache(shared):
    """An empty cache: the first sweep builds the kernels in it, as that of a user does."""
    folder = shared / "cache"
    folder.mkdir(exist_ok=True)
    return folder


def _once(folder, cache, study):
    """A sweep from an empty folder to its page; the first worker that asks measures it, and the others look at it."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sweeps, shown = Sweeps(folder / "project", cache), folder / "shown"
        if not shown.exists():
            shutil.rmtree(sweeps.folder, ignore_errors=True)  # of a worker that failed
            sweeps = Sweeps.make(folder / "project", cache)
            sweeps.write_study(study)
            shown.write_text(sweeps.sweep().stderr)
        sweeps.shown = shown.read_text()
    return sweeps


@pytest.fixture(scope="session")
def finished(shared, cache):
    """A measured study of two launches, from an empty folder to its page."""
    insist("two-cpus")
    sweeps = _once(shared / "finished", cache, {})
    assert f" Report {(sweeps.results / 'report/index.html').as_uri()}" in sweeps.shown
    return sweeps


@pytest.fixture
def project(finished, tmp_path):
    """The same, to go on from."""
    return finished.copy(tmp_path / "project")


@pytest.fixture(scope="session")
def modelled(shared):
    """A modelled study with a sweep of partitions, from an empty folder to its page."""
    return _once(shared / "modelled", shared / "modelled/cache", MODELLED)


@pytest.fixture(scope="session")
def arranged(shared):
    """A modelled study of distances and mitigations, from an empty folder to its page."""
    return _once(shared / "arranged", shared / "arranged/cache", ARRANGED)
