"""A launch collects garbage before each stretch: what is loaded already is left out, or that would take longest."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def _frozen() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
