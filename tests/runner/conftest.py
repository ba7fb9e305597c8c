"""What the tests with real processes share."""

from pathlib import Path

import pytest

from castmates.workloads.native.build import build, find_compiler


@pytest.fixture(scope="session")
def compiler() -> list[str]:
    """Return a C compiler that works here."""
    found = find_compiler()
    if found is None:
        pytest.skip("there is no working C compiler")
    return found


@pytest.fixture(scope="session")
def kernels(compiler: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the native kernels once and return the directory they are in."""
    directory = tmp_path_factory.mktemp("kernels")
    build(directory, compiler)
    return directory
