"""Finished sweeps, one for each shape of study, which the tests look at, or copy and go on from."""

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
def cache(tmp_path_factory):
    """An empty cache: the first sweep builds the kernels in it, as that of a user does."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def finished(tmp_path_factory, cache):
    """A measured study of two launches, from an empty folder to its page."""
    insist("two-cpus")
    sweeps = Sweeps.make(tmp_path_factory.mktemp("project") / "first", cache)
    done = sweeps.sweep()
    assert f" Report {(sweeps.results / 'report/index.html').as_uri()}" in done.stderr
    return sweeps


@pytest.fixture
def project(finished, tmp_path):
    """The same, to go on from."""
    return finished.copy(tmp_path / "project")


@pytest.fixture(scope="session")
def modelled(tmp_path_factory):
    """A modelled study with a sweep of partitions, from an empty folder to its page."""
    folder = tmp_path_factory.mktemp("modelled")
    sweeps = Sweeps.make(folder / "project", folder / "cache")
    sweeps.write_study(MODELLED)
    sweeps.shown = sweeps.sweep().stderr
    return sweeps


@pytest.fixture(scope="session")
def arranged(tmp_path_factory):
    """A modelled study of distances and mitigations, from an empty folder to its page."""
    folder = tmp_path_factory.mktemp("arranged")
    sweeps = Sweeps.make(folder / "project", folder / "cache")
    sweeps.write_study(ARRANGED)
    sweeps.sweep()
    return sweeps
