"""What most collectors are: they look at both edges of a window, and what lies between the two looks is the sample."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

from castmates.protocols import Sample

Edge = TypeVar("Edge")


class BetweenEdges(ABC, Generic[Edge]):
    """A collector (castmates.protocols) that opens nothing, unless its class says so."""

    _members: Mapping[str, int] = MappingProxyType({})
    _active: Sequence[str] = ()
    _opening: Edge | None = None

    def attach(self, members: Mapping[str, int]) -> None:
        """Remember whom to watch."""
        self._members = dict(members)

    def start(self, active: Sequence[str]) -> None:
        """Look at the opening edge of a window in which these members run."""
        self._active = tuple(active)
        self._opening = self._look()

    def stop(self) -> list[Sample]:
        """Look at the closing edge, and return what lies between both; nothing without an opening."""
        opening, self._opening = self._opening, None
        return [] if opening is None else self._between(opening, self._look())

    def close(self) -> None:
        """Forget everybody; safe to call twice."""
        self._members, self._opening = {}, None

    @abstractmethod
    def _look(self) -> Edge:
        """Read everything at one edge."""

    @abstractmethod
    def _between(self, opening: Edge, closing: Edge) -> list[Sample]:
        """Return what both looks come to."""
