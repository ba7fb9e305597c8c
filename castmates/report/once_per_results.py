"""What a figure, its caption and its text alternative all need is made once."""

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Made = TypeVar("Made")


def once(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """Make it once of each object, and forget it with the object."""
    known: dict[int, Made] = {}

    @wraps(make)
    def made(of: Any) -> Made:  # noqa: ANN401 (whatever `make` takes)
        if id(of) not in known:
            known[id(of)] = make(of)
            weakref.finalize(of, known.pop, id(of), None)
        return known[id(of)]

    return made
