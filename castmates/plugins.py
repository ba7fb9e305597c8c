"""What other packages add to Castmates: entry points by kind, and one sentence where a plug-in is broken.

A package that is installed beside Castmates is used; docs/plugins.md has what each kind has to be.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PREFIX = "castmates."
KINDS = {  # of entry points -> what one of them is called in a sentence
    "collectors": "collector",
    "figures": "figure",
    "metrics": "metric",
    "suites": "suite",
    "allocators": "allocator",
}


@dataclass(frozen=True)
class Plugin:
    """An entry point of another package."""

    kind: str
    name: str
    package: str
    version: str
    point: "EntryPoint"

    def load(self) -> Any:  # noqa: ANN401 (each kind has a type, which its user checks)
        """Import it."""
        try:
            return self.point.load()
        except Exception as problem:  # whatever a plug-in's module raises
            raise self.broken(f"cannot be loaded: {_words(problem)}") from problem

    def broken(self, why: str) -> CastmatesError:
        """The sentence that names it, and what to do."""
        return CastmatesError(f"the {self} {why}. Fix that package, or uninstall it.")

    def __str__(self) -> str:
        return f"{KINDS[self.kind]} '{self.name}' of the package {self.package} {self.version}"


@cache
def installed() -> tuple[Plugin, ...]:
    """Every plug-in that is installed here, in the order of kinds and names; none of them is imported."""
    from importlib.metadata import entry_points  # a fifth of what `castmates --help` would take

    every = entry_points()
    found = [
        Plugin(
            kind=kind,
            name=point.name,
            package=point.dist.name if point.dist else "unknown",
            version=point.dist.version if point.dist else "unknown",
            point=point,
        )
        for kind in KINDS
        for point in every.select(group=f"{PREFIX}{kind}")
    ]
    return tuple(sorted(found, key=lambda plugin: (list(KINDS).index(plugin.kind), plugin.name, plugin.package)))


def added(kind: str, check: Callable[[Any], str] = lambda _thing: "", taken: Iterable[str] = ()) -> dict[str, Any]:
    """By name, what plug-ins add of this kind, imported; `check` gives what is wrong with one, or "".

    Names are unique: neither one of ours (`taken`) nor another plug-in's may be used again.
    """
    things: dict[str, Any] = {}
    names = set(taken)
    for plugin in installed():
        if plugin.kind != kind:
            continue
        if plugin.name in names:
            raise plugin.broken("has a name that is taken")
        names.add(plugin.name)
        thing = plugin.load()
        if why := check(thing):
            raise plugin.broken(f"cannot be used: {why}")
        things[plugin.name] = thing
    return things


def of(kind: str, name: str) -> Plugin:
    """The plug-in of this kind and name, which is installed."""
    return next(plugin for plugin in installed() if (plugin.kind, plugin.name) == (kind, name))


def refuse_broken() -> None:
    """Import every plug-in before anything is measured: one that fails hours later would be found too late."""
    for plugin in installed():
        plugin.load()


def versions() -> dict[str, str]:
    """The packages that add anything, with their versions: launches and the page record them."""
    return {plugin.package: plugin.version for plugin in installed()}


def examined() -> list[dict[str, str]]:
    """For the doctor: each plug-in, and why it cannot be imported, "" where it can."""
    return [{"what": str(plugin), "broken": _why_broken(plugin)} for plugin in installed()]


def _why_broken(plugin: Plugin) -> str:
    try:
        plugin.load()
    except CastmatesError as problem:
        return str(problem)
    return ""


def _words(problem: Exception) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())
