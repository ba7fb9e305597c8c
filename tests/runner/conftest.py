"""What the tests with real processes share."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from castmates.machine import lock
from castmates.study.model import Workload
from castmates.workloads import environments
from castmates.workloads.heartbeat import create
from castmates.workloads.native.build import find_compiler
from tests.builds import ROOT, shared_cache
from tests.needs import insist
from tests.runner.stage import JOB, PYTHON, measured, plan_of, python_job
from tests.runner.twin_packages import folder
from tests.waiting import flock

# What `make twins` has unpacked is found last, and test modules read the PATH when they are imported.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), str(folder())])


@pytest.fixture(scope="session", autouse=True)
def _limited() -> Iterator[None]:
    """Wait for the machine no longer than a test may; others may measure on it."""
    with patch.object(lock, "fcntl", SimpleNamespace(**vars(fcntl) | {"flock": flock})):
        yield


@pytest.fixture(scope="session")
def compiler() -> list[str]:
    """Return a C compiler that works here."""
    insist("compiler")
    return find_compiler()


@pytest.fixture(scope="session")
def cache(compiler: list[str]) -> Path:
    """The cache that all tests share, with the native kernels in it."""
    return shared_cache()


@pytest.fixture(scope="session")
def kernels(cache: Path) -> Path:
    """The directory of the native kernels."""
    return environments.location(environments.NATIVE, ROOT / "envs", cache) / "bin"


@pytest.fixture
def beats(tmp_path: Path) -> Path:
    """An empty heartbeat file."""
    create(tmp_path / "beats")
    return tmp_path / "beats"


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give what only the members of this test's launches have: their scratch folders are put below the test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield str(tmp_path / "castmates-")
    tempfile.tempdir = None


@pytest.fixture(scope="session")
def shared_launch(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one measured launch: its lead reports phases, its antagonist is run again and again."""
    insist("two-cpus")
    folder = tmp_path_factory.mktemp("launch")
    lead = python_job(JOB, variables={"CASTMATES_PHASE_COUNTERS": "page-faults,instructions"})
    finite = Workload(command=[PYTHON, "-S", "-c", "sum(range(300000))"], unit="run")
    plan = plan_of({"lead": lead, "finite": finite}, ["finite"], cache, window=0.4, rounds=1)
    measured(plan, folder, cache)
    return folder
