"""Collectors that plug-ins add: each is asked as ours are, and where one fails, the sentence names its package."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from castmates import plugins
from castmates.protocols import Collector, Sample

Answer = TypeVar("Answer")
METHODS = ("attach", "start", "stop", "close", "about")


class Added:
    """A collector of a plug-in, whose mistakes become sentences."""

    def __init__(self, plugin: plugins.Plugin, make: Callable[[Sequence[int]], Collector], cpus: Sequence[int]) -> None:
        self._plugin = plugin
        self.name = plugin.name
        self._collector = self._asked(lambda: make(cpus))
        if lacking := [name for name in METHODS if not callable(getattr(self._collector, name, None))]:
            raise plugin.broken(f"cannot be used: it has no method {', '.join(lacking)} (castmates help plugins)")
        self.inside_windows = bool(getattr(self._collector, "inside_windows", False))
        self.every_slice = bool(getattr(self._collector, "every_slice", False))

    def attach(self, members: Mapping[str, int]) -> None:
        """Begin to watch these members."""
        self._asked(lambda: self._collector.attach(members))

    def start(self, active: Sequence[str]) -> None:
        """Mark the opening edge."""
        self._asked(lambda: self._collector.start(active))

    def stop(self) -> list[Sample]:
        """Mark the closing edge and return what was read."""
        return self._asked(lambda: list(self._collector.stop()))

    def close(self) -> None:
        """Let go of everything."""
        self._asked(self._collector.close)

    def about(self) -> dict[str, str]:
        """What is collected, and whose work that is."""
        package = f"{self._plugin.package} {self._plugin.version}"
        return {**self._asked(self._collector.about), "package": package}

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except Exception as problem:  # whatever a plug-in's code raises
            raise self._plugin.broken(f"failed: {type(problem).__name__}: {problem}") from problem


def added_collectors(cpus: Sequence[int]) -> list[Collector]:
    """One of each that is installed, for a launch on these CPUs."""
    makers = plugins.added("collectors", _wrong)
    return [Added(plugins.of("collectors", name), make, cpus) for name, make in makers.items()]


def _wrong(make: object) -> str:
    return "" if callable(make) else f"it is a {type(make).__name__}, and makes no collector of a list of CPUs"
