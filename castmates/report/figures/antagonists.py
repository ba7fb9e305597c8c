"""One colour and one marker for each antagonist, and for being alone: the same in all figures of a study."""

from collections import Counter
from collections.abc import Iterable

from castmates.analysis.core import once
from castmates.report.figures.style import GREY, INK, MARKERS, Look, Name, looks_of
from castmates.report.results import Results
from castmates.report.text.words import plain
from castmates.study.spec import Plan

BESIDE = "beside "
# What runs without an antagonist has no colour.
BASELINES: dict[str, Look] = {
    "alone": (INK, "o"),
    "alone-again": (GREY, "o"),
    "placebo": ("#9a9a9a", "d"),
}


def looks(results: Results, names: Iterable[str]) -> dict[str, Look]:
    """Colour and marker of these antagonists; one that sits on several CPUs (stream@1) has one colour for all of them.

    The order of the study decides, not what a figure happens to show.
    """
    return looks_in_order(antagonists(results), names)


def looks_of_scenes(results: Results, scenes: Iterable[str]) -> dict[str, Look]:
    """By what ran: the baselines first, then `beside …` in the study's order."""
    there = set(scenes)
    names = {what.removeprefix(BESIDE) for what in there if what.startswith(BESIDE)}
    besides = {f"{BESIDE}{name}": look for name, look in looks(results, in_order(results, names)).items()}
    return {what: look for what, look in BASELINES.items() if what in there} | besides


def in_order(results: Results, names: Iterable[str]) -> list[str]:
    """These antagonists in the study's order, then others by their names."""
    known = {name: place for place, name in enumerate(antagonists(results))}
    return sorted(names, key=lambda name: (known.get(plain(name), len(known)), name))


def looks_in_order(order: Iterable[str], names: Iterable[str]) -> dict[str, Look]:
    """The same, where only the order of the antagonists is known."""
    names = list(dict.fromkeys(names))
    known = looks_of(dict.fromkeys(filter(None, [*order, *map(plain, names)])), shift=1)
    found: dict[str, Look] = {}
    seats: Counter[str] = Counter()
    for name in names:
        if not name:
            found[name] = BASELINES["alone"]
            continue
        colour, marker = known[plain(name)]
        found[name] = colour, MARKERS[(MARKERS.index(marker) + seats[plain(name)]) % len(MARKERS)]
        seats[plain(name)] += 1
    return found


def other_looks(results: Results, names: Iterable[Name]) -> dict[Name, Look]:
    """Looks of things that are no antagonists: in colours that no antagonist has, as long as there are any."""
    known, names = antagonists(results), list(dict.fromkeys(names))
    whole = looks_of(range(len(known) + len(names)), shift=1)
    return {name: whole[len(known) + place] for place, name in enumerate(names)}


@once
def antagonists(results: Results) -> list[str]:
    """Everybody who runs beside a lead, together and one by one: in the plan's order, those of the controls last."""
    together = [str(name) for name in results.effects["antagonists"].unique()]
    for names in (results.controls["mix"], results.windows["mix"]):
        together += [beside(str(name)) for name in names.dropna().unique()]
    return antagonists_of(results.plan, together)


def antagonists_of(plan: Plan, more: Iterable[str] = ()) -> list[str]:
    """Those of a plan in its order, then more that were measured."""
    mixes = (*plan.mixes, *(control.mix for control in plan.controls))
    together = [plain(name) for name in (*("+".join(mix.antagonists) for mix in mixes), *more)]
    single = [name for names in together for name in names.split("+")]
    return [name for name in dict.fromkeys([*together, *single]) if name]


def beside(mix: str) -> str:
    """Who runs beside the lead of a mix: `dlrm@0+stream@1` is `stream`."""
    return plain(mix.partition("+")[2])


def user_first(results: Results, leads: Iterable[str]) -> list[str]:
    """These leads, each once: those of the study in its order, then those that only controls have."""
    order = {name: place for place, name in enumerate(results.leads)}
    return sorted(dict.fromkeys(leads), key=lambda name: order.get(plain(name), len(order)))
