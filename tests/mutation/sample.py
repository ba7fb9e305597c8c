"""Which mutants a run tries: a sample of each room, drawn with a fixed seed."""

import random
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import sqrt

from tests.mutation import PACKAGE, ROOT
from tests.mutation.mutants import Mutant, Site, sites

SEED = 17
# Changes that mostly end in an exception at once: a third as likely, so that those of the logic are the more.
EASY = {"arg_removal", "assignment", "string"}
LINES = 400  # of a room's code, for each mutant
FEWEST = 8
FLAT = "."  # the modules outside of all rooms


def areas() -> list[str]:
    """The rooms."""
    return [FLAT, *sorted(path.name for path in (ROOT / PACKAGE).iterdir() if (path / "__init__.py").is_file())]


def modules(area: str) -> list[str]:
    """The files of a room in this tree."""
    room = ROOT / PACKAGE / area
    files = room.glob("*.py") if area == FLAT else room.rglob("*.py")
    return sorted(str(file.relative_to(ROOT)) for file in files)


def drawn(wanted: Iterable[str]) -> list[Site]:
    """The sample: one mutant of a module where the room has enough of them, and of a statement at most.

    Large modules are drawn more often, and an operator that fits often does not crowd out the others.
    """
    chosen = []
    for area in wanted:
        chance = random.Random(f"{SEED} {area}")
        lines = {file: (ROOT / file).read_text().count("\n") for file in modules(area)}
        number = max(FEWEST, sum(lines.values()) // LINES)
        files = sorted(lines, key=lambda file: -(chance.random() ** (1 / (1 + lines[file]))))[:number]
        all_of_them = [site for file in files for site in sites(file, area)]
        often = Counter(site.mutant.operator for site in all_of_them)
        places = [(chance.random() ** _rarity(site.mutant.operator, often), site) for site in all_of_them]
        most = -(-number // len(files))
        taken: dict[tuple[str, str, str], Site] = {}
        of_file = Counter[str]()
        for _, site in sorted(places, key=lambda place: -place[0]):
            mutant = site.mutant
            key = (mutant.module, mutant.function, mutant.before)
            if len(taken) < number and of_file[mutant.module] < most and key not in taken and _compiles(site):
                taken[key] = site
                of_file[mutant.module] += 1
        chosen += sorted(taken.values(), key=lambda site: (site.mutant.module, site.lines.start))
    return chosen


def _rarity(operator: str, often: Counter[str]) -> float:
    return sqrt(often[operator]) * (3 if operator in EASY else 1)


def _compiles(site: Site) -> bool:
    try:
        compile(site.source(), site.mutant.module, "exec")
    except SyntaxError:
        return False
    return True


def found(mutant: Mutant) -> Site | None:
    """The same change of the same statement in this tree: in its module, else in a function of its name anywhere."""
    own = mutant.function.split(".")[-1]
    wanted = (own, mutant.operator, mutant.before, mutant.after, mutant.ordinal)
    for module in dict.fromkeys([mutant.module, *_defining(own)]):
        for site in sites(module, mutant.area) if (ROOT / module).is_file() else ():
            is_ = site.mutant
            if wanted == (is_.function.split(".")[-1], is_.operator, is_.before, is_.after, is_.ordinal):
                return site
    return None


@cache
def _defining(name: str) -> list[str]:
    defined = re.compile(rf"\b(?:def|class) {re.escape(name)}\b")
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    return [str(file.relative_to(ROOT)) for file in files if defined.search(file.read_text())]
