"""The compiled kernels, built once for all tests: in the cache of this repository, from where others are filled."""

import shutil
from pathlib import Path

from castmates.files import cache_folder
from castmates.workloads import environments

ROOT = Path(__file__).resolve().parents[1]


def shared_cache() -> Path:
    """Return the repository's cache, with the kernels in it."""
    cache = ROOT / cache_folder()
    environments.build(environments.NATIVE, ROOT / "envs", cache)
    return cache


def fill(cache: Path) -> Path:
    """Copy the kernels into a cache that a test has for itself, as if they had been built there."""
    built = environments.location(environments.NATIVE, ROOT / "envs", shared_cache())
    place = environments.location(environments.NATIVE, ROOT / "envs", cache)
    if not place.exists():
        shutil.copytree(built, place)
    return cache
