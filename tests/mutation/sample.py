"""Which mutants a run tries: a sample of each area, drawn with a fixed seed."""

import random
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatch
from math import sqrt

from tests.mutation import ROOT
from tests.mutation.mutants import Site, sites

SEED = 13
# Changes that mostly end in an exception at once: a third as likely, so that those of the logic are the more.
EASY = {"arg_removal", "assignment", "string"}
# How many of an area, where its files may lie, and which of those are left out.
AREAS = {
    "analysis": (110, ["castmates/analysis/*.py"], []),
    "study": (80, ["castmates/study/*.py"], []),
    "ledger and settling": (
        40,
        [f"castmates/runner/*{name}.py" for name in ("ledger", "ledger_load", "ledger_readings")]
        + ["castmates/runner/*settling.py"],
        [],
    ),
    "rdt's driver": (70, ["castmates/rdt/*.py"], ["castmates/rdt/fake/*", "castmates/rdt/pqos*"]),
}


def modules(area: str) -> list[str]:
    """The files of an area in this tree. `*` covers folders too."""
    _, wanted, left_out = AREAS[area]
    files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "castmates").rglob("*.py"))
    return [
        file
        for file in files
        if any(fnmatch(file, pattern) for pattern in wanted) and not any(fnmatch(file, pattern) for pattern in left_out)
    ]


def drawn(areas: Iterable[str] = AREAS) -> list[Site]:
    """The sample: one mutant of a statement at most, and an operator that fits often does not crowd out the others."""
    chosen = []
    for area in areas:
        number = AREAS[area][0]
        chance = random.Random(f"{SEED} {area}")
        all_of_them = [site for module in modules(area) for site in sites(module, area)]
        often = Counter(site.mutant.operator for site in all_of_them)
        places = [(chance.random() ** _rarity(site.mutant.operator, often), site) for site in all_of_them]
        taken: dict[tuple[str, str, str], Site] = {}
        for _, site in sorted(places, key=lambda place: -place[0]):
            if _compiles(site):
                taken.setdefault((site.mutant.module, site.mutant.function, site.mutant.before), site)
            if len(taken) >= number:
                break
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
