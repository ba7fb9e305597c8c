"""What windows and slices have of the requests to services; where there is no service, nothing is imported for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from castmates.results.columns.launch import OF_SERVICES
from castmates.runner.processes.launch import Running
from castmates.runner.rounds.slices import Slice
from castmates.runner.rounds.window import Window

if TYPE_CHECKING:
    from castmates.runner.rounds.requests import Recorded

NOT_A_SERVICE = dict.fromkeys(OF_SERVICES, math.nan)


@dataclass(frozen=True)
class Services:
    """What the services of a launch recorded, by the member's name; of one that lost something nothing is known."""

    recorded: "Mapping[str, Recorded | None]"

    @classmethod
    def of(cls, cast: Sequence[Running]) -> "Services":
        """Take what each of them recorded."""
        logs = {process.name: process.requests for process in cast if process.requests is not None}
        if not logs:
            return cls({})
        from castmates.runner.rounds.requests import Recorded

        found: dict[str, Recorded | None] = {}
        for name, log in logs.items():
            records = log.records()  # before what is lost is looked at: it shows some of it
            found[name] = None if log.lost or log.trouble else Recorded(records)
        return cls(found)

    def of_window(self, window: Window, name: str) -> dict[str, float]:
        """A window's columns; of a service the rate and what is made of it are those of its speed.

        Beside others the speed may be a bound, so that a loss is that or more. Of a baseline it must be known: else no
        loss would be seen where both are bounds.
        """
        if name not in self.recorded:
            return dict(NOT_A_SERVICE)
        if (recorded := self.recorded[name]) is None:
            return NOT_A_SERVICE | {"rate": math.nan, "later": math.nan}
        slices = window.slices_of(name)
        requests = recorded.of_slices(name, slices)
        speed = requests.speed(at_most=window.scene.kind == "corun")
        return NOT_A_SERVICE | requests.columns | {"rate": speed, "later": recorded.later(name, slices)}

    def of_slice(self, each: Slice, name: str) -> dict[str, float]:
        """A slice's columns: the speed of a service."""
        if name not in self.recorded:
            return {}
        recorded = self.recorded[name]
        return {"rate": recorded.of_slices(name, [each]).speed(at_most=True) if recorded else math.nan}
