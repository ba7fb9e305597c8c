"""Finds a mutant of another commit in this tree, whose modules and functions may have other names."""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.mutation import PACKAGE, ROOT
from tests.mutation.mutants import Mutant, Site, sites

_MOVES = re.compile(r"(\S+) (?:moves to|is folded into) (\S+)")
_SOME = re.compile(r"from (\S+) to (\S+): (.+)")
_WORDS = re.compile(r"\w+|[^\w\s]+")
SIMILAR = 0.6  # of a statement's words, where its function is the same; else nearly all
NEARLY_ALL = 0.85


@dataclass
class Renames:
    """Where the old tree's modules and functions went."""

    files: dict[str, str] = field(default_factory=dict)
    names: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def places(self, module: str, function: str) -> list[tuple[str, str]]:
        """Where a function of an old module may be now, the likeliest first."""
        top, dot, rest = function.partition(".")
        places = []
        if (module, top) in self.names:
            file, name = self.names[module, top]
            places.append((file, name + dot + rest))
        elif top == "<module>":
            places += [(file, top) for (old, _), (file, _) in self.names.items() if old == module]
        places += [(self.files.get(module, module), function), (module, function)]
        return [place for place in dict.fromkeys(places) if (ROOT / place[0]).is_file()]


def read(file: Path | None) -> Renames:
    """Read a table of files: `A moves to B`, `A is folded into B`, `from A to B: name, old as new`."""
    renames = Renames()
    for line in file.read_text().splitlines() if file else ():
        if moved := _MOVES.fullmatch(line.strip()):
            renames.files[moved[1]] = moved[2]
        elif some := _SOME.fullmatch(line.strip()):
            for item in some[3].split(","):
                old, _, new = item.strip().partition(" as ")
                renames.names[some[1], old] = (some[2], new or old)
    return renames


def find(mutant: Mutant, renames: Renames) -> tuple[Site, str] | None:
    """The mutant in this tree, and how it was recognised: `same`, `elsewhere` or `similar`. None where it is not."""
    places = renames.places(mutant.module, mutant.function)
    for module, function in places:
        if (site := _only(_same(mutant, module, function), mutant.ordinal)) is not None:
            return site, "same"
    if (site := _only(_anywhere(mutant, [module for module, _ in places]), mutant.ordinal)) is not None:
        return site, "elsewhere"
    closest = max(_alike(mutant, places), key=lambda pair: pair[0], default=None)
    return (closest[1], "similar") if closest else None


def _only(found: Iterable[Site], ordinal: int) -> Site | None:
    return next((site for site in found if site.mutant.ordinal == ordinal), None)


def _same(mutant: Mutant, module: str, function: str) -> Iterator[Site]:
    for site in sites(module, mutant.area):
        if site.mutant.function == function and _what(site.mutant) == _what(mutant):
            yield site


def _what(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.operator, mutant.before, mutant.after


def _anywhere(mutant: Mutant, near: list[str]) -> Iterator[Site]:
    """The same change of the same statement under another function's name nearby, or in a function of this name."""
    own = mutant.function.split(".")[-1]
    for module in dict.fromkeys([*near, *_defining(own)]):
        for site in sites(module, mutant.area):
            if _what(site.mutant) == _what(mutant) and (module in near or site.mutant.function.split(".")[-1] == own):
                yield site


@cache
def _defining(name: str) -> list[str]:
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    defined = re.compile(rf"\b(?:def|class) {re.escape(name)}\b")
    return [str(file.relative_to(ROOT)) for file in files if defined.search(file.read_text())]


def _alike(mutant: Mutant, places: list[tuple[str, str]]) -> Iterator[tuple[float, Site]]:
    change, words = _change(mutant), _WORDS.findall(mutant.before)
    functions = set(places) | {(module, "") for module in _defining(mutant.function.split(".")[-1])}
    for module, function in sorted(functions):
        for site in sites(module, mutant.area):
            if site.mutant.operator != mutant.operator or _change(site.mutant) != change:
                continue
            is_own = (
                site.mutant.function == function
                or site.mutant.function.split(".")[-1] == mutant.function.split(".")[-1]
            )
            likeness = difflib.SequenceMatcher(None, words, _WORDS.findall(site.mutant.before), autojunk=False).ratio()
            if likeness >= (SIMILAR if is_own else NEARLY_ALL):
                yield likeness + is_own, site


@cache
def _change(mutant: Mutant) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that a mutant takes and gives."""
    before, after = _WORDS.findall(mutant.before), _WORDS.findall(mutant.after)
    edits = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    taken = [word for kind, a, b, _, _ in edits if kind != "equal" for word in before[a:b]]
    given = [word for kind, _, _, a, b in edits if kind != "equal" for word in after[a:b]]
    return tuple(taken), tuple(given)
