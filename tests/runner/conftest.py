"""What the tests with real processes share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from castmates.files import cache_folder
from castmates.workloads import environments
from castmates.workloads.native.build import find_compiler


@pytest.fixture(scope="session")
def compiler() -> list[str]:
    """Return a C compiler that works here."""
    found = find_compiler()
    if found is None:
        pytest.skip("there is no working C compiler")
    return found


@pytest.fixture(scope="session")
def kernels(compiler: list[str]) -> Path:
    """Compile the native kernels, once for each content, and return the directory they are in."""
    root = Path(__file__).parents[2]
    cache = root / cache_folder()
    return environments.build(environments.NATIVE, root / "envs", cache) / "bin"


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give what only the members of this test's blocks have: their scratch folders are put below the test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield str(tmp_path / "castmates-")
    tempfile.tempdir = None
