"""One finished sweep, which the tests copy and go on from."""

import os

import pytest

from tests.workflow.sweeps import Sweeps


def pytest_collection_modifyitems(items):
    for item in items:
        if "workflow" in item.path.parts:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def finished(tmp_path_factory, cache):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    sweeps = Sweeps.make(tmp_path_factory.mktemp("project") / "first", cache)
    done = sweeps.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The report is in results/small/report/index.html" in done.stderr
    return sweeps


@pytest.fixture
def project(finished, tmp_path):
    return finished.copy(tmp_path / "project")
