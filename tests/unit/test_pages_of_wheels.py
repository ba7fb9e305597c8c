"""A lock that names a page of wheels is installed from a folder where that has all of them, and else from the page."""

import sys
from pathlib import Path

import pytest

from castmates.workloads.python_environment import _sources, locked_versions

TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
PAGE = "--find-links https://somewhere.example/whl/\n"
LOCK = f"# made\n{PAGE}\ntorch==2.13.0+cpu \\\n    --hash=sha256:00\nnumpy==2.4.6\n"


@pytest.fixture
def lock(tmp_path):
    file = tmp_path / "torch.lock"
    file.write_text(LOCK)
    (tmp_path / "place").mkdir()
    (tmp_path / "wheels").mkdir()
    return file


def sources(lock: Path) -> list[str]:
    return _sources(lock, locked_versions(lock), sys.executable, lock.parent / "place")


@pytest.mark.parametrize("wheel", ["", f"torch-2.13.0-{TAG}-any.whl", "torch-2.13.0+cpu-cp39-any.whl"])
def test_without_the_very_wheel_it_is_the_lock_itself(lock, monkeypatch, wheel):
    monkeypatch.setenv("PIP_FIND_LINKS", str(lock.parent / "wheels"))
    if wheel:
        (lock.parent / "wheels" / wheel).touch()
    assert sources(lock) == [str(lock)]


def test_with_it_the_page_is_not_asked_and_hashes_stay(lock, monkeypatch):
    wheels = lock.parent / "wheels"
    (wheels / f"torch-2.13.0+cpu-{TAG}-{TAG}-manylinux_2_28_x86_64.whl").touch()
    monkeypatch.setenv("PIP_FIND_LINKS", f"{lock.parent / 'nowhere'} {wheels}")
    *options, copy = sources(lock)
    assert options == ["--find-links", str(wheels)]
    assert Path(copy).read_text() == LOCK.replace(PAGE, "")
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert sources(lock) == [str(lock)]


def test_the_own_locks_name_a_page_for_what_is_not_on_pypi_alone():
    for file in (Path(__file__).parents[2] / "envs").glob("*.lock"):
        elsewhere = [name for name, version in locked_versions(file).items() if "+" in version]
        assert bool(elsewhere) is ("\n--find-links https://" in file.read_text()), file
