"""Launches of an adaptive study: which mixes one measures, by what the looks before it decided."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from castmates.english import listed
from castmates.study.curves import WAYS, curves
from castmates.study.scenes import scenes_of
from castmates.study.spec import Cohort, Launch, Mix, Scene


def skipped_at(cohort: Cohort, measured: Collection[str] | None, later: Collection[str]) -> tuple[str, ...]:
    """Identities of the mixes that a launch leaves out: after a look all that do not go on, before any the later ones.

    `measured` has the mixes that go on after the look before the launch; None before the first look.
    """
    identities = [mix.identity for mix in cohort.mixes]
    if measured is None:
        return tuple(identity for identity in identities if identity in later)
    return tuple(identity for identity in identities if identity not in measured)


def as_launched(launch: Launch) -> Launch:
    """The launch with only what it measures: mixes that are left out take their scenes and members along."""
    if not launch.skipped:
        return launch
    cohort = launch.cohort
    mixes = tuple(mix for mix in cohort.mixes if mix.identity not in launch.skipped)
    playing = {cohort.lead.name, *(name for mix in mixes for name in mix.antagonists)}
    members = tuple(member for member in cohort.members if member.name in playing)
    names = {scene.name for scene in scenes_of(mixes, {member.name: member for member in members})} if mixes else set()
    # In the cohort's order, and with its shares: those of a measured cohort are what was written then.
    scenes = tuple(scene for scene in cohort.scenes if scene.name in names)
    return launch.model_copy(
        update={"cohort": cohort.model_copy(update={"mixes": mixes, "members": members, "scenes": scenes})}
    )


def scenes_measured(launch: Launch) -> Sequence[Scene]:
    """The scenes that a launch measures in each round."""
    return as_launched(launch).cohort.scenes


def look_before(path: str, looks: Sequence[Collection[str]]) -> int:
    """The number of the look that decides what a launch measures; 0 for those of before the first look."""
    return next((number for number, added in enumerate(looks) if path in added), 0)


# What an adaptive study asks of each mix: the question that stops it when it is answered.

Kind = Literal["limit", "knee", "margin", "order"]
LIMIT: Kind = "limit"
KNEE: Kind = "knee"
MARGIN: Kind = "margin"
ORDER: Kind = "order"
KEPT_PCT = 95.0  # of the rate alone, at the knee


@dataclass(frozen=True)
class Question:
    """On which side of an edge a lead's slowdown lies; or in an order, which of the partitions of a mix is best."""

    kind: Kind
    edge: float  # log of the slowdown
    mix: str = ""  # in an order: whose partitions compete


def questions(mixes: Sequence[Mix], limit_pct: float | None, margin: float) -> dict[str, Question]:
    """The question of each mix, by identity.

    The loss of a mix without partitions against the margin; under a partition, the limit where the study has one. Else
    the knee of a curve over ways, the margin on other curves, and the order of partitions that lie on no curve.
    """
    of_margin = Question(MARGIN, math.log1p(margin))
    of_limit = None if limit_pct is None else Question(LIMIT, -math.log1p(-limit_pct / 100))
    of_knee = Question(KNEE, -math.log(KEPT_PCT / 100))
    on_ways = {cell.identity: curve.unit == WAYS for curve in curves(mixes) for cell in curve.cells}
    found: dict[str, Question] = {}
    for mix in mixes:
        if not mix.partitions:
            found[mix.identity] = of_margin
        elif not mix.antagonists:
            found[mix.identity] = of_knee
        elif of_limit is not None:
            found[mix.identity] = of_limit
        elif mix.identity not in on_ways:
            found[mix.identity] = Question(ORDER, math.nan, mix.name)
        else:
            found[mix.identity] = of_knee if on_ways[mix.identity] else of_margin
    return found


# What the looks of an adaptive study decided, in words.

FEW = 12  # lines of one look
OPEN = "is still open"
PLACES = {
    "best": "loses least of all partitions",
    "worse": "loses more than the best partition",
    "alike": "loses as much as the best partition",
    "nothing": "no launch gave anything",
}


class _Asked(Protocol):
    """A mix that is measured, at a look."""

    @property
    def answer(self) -> str: ...
    @property
    def goes_on(self) -> bool: ...
    @property
    def launches(self) -> int: ...
    @property
    def why(self) -> str: ...


def reason(asked: _Asked, question: Question) -> str:
    """Why a mix goes on, or stops."""
    if asked.answer:
        found = PLACES.get(asked.answer) or f"loses {asked.answer} than {edge_of(question)} for certain"
        return f"{found}; a few more launches keep its interval honest" if asked.goes_on else found
    if not asked.launches:
        return f"because {asked.why}" if asked.goes_on else "no launch is left that could measure it"
    if math.isnan(question.edge):
        return f"whether it loses least {OPEN}"
    return f"whether it loses more than {edge_of(question)} {OPEN}"


def edge_of(question: Question) -> str:
    """The edge in per cent: of the rate alone; a margin, as the study has it, of the time alone."""
    share = math.expm1(question.edge) if question.kind == MARGIN else -math.expm1(-question.edge)
    return f"{100 * share:.3g} %"


def sentences(look: Mapping[str, Any]) -> list[str]:
    """What one look decided: a line for the whole, then one for all of a mix that stop or begin for one reason."""
    cells = look["cells"]
    going = sum(cell["goes_on"] for cell in cells)
    ending = "es" * (going == 1)
    head = f"Look {look['look']}: {going} of {len(cells)} measured mixes and partitions go{ending} on."
    alike: dict[tuple[str, bool, str], list[str]] = {}
    for cell in (cell for cell in cells if cell["is_news"]):
        alike.setdefault((cell["mix"], cell["goes_on"], cell["why"]), []).append(cell["partition"])
    lines = [_line(mix, goes_on, why, names) for (mix, goes_on, why), names in alike.items()]
    return [head, *lines[:FEW], *([f"… and {len(lines) - FEW} more reasons"] if len(lines) > FEW else [])]


def _line(mix: str, goes_on: bool, why: str, names: Sequence[str]) -> str:
    ending = "s" if len(names) == 1 else ""
    if not (ending or goes_on):
        why = why.replace("whether it", "whether each", 1) if why.startswith("whether it") else f"each {why}"
    return f"{mix}, {listed(list(names))} {f'begin{ending}, {why}' if goes_on else f'stop{ending}: {why}'}"


def saved(look: Mapping[str, Any], windows: int) -> str:
    """How much less than the full grid was measured."""
    full = look["full_windows"]
    if not full or windows >= full:
        return ""
    return (
        f"{windows:,} windows were measured; the full grid with the most launches has {full:,}: "
        f"{100 * (1 - windows / full):.0f} % fewer."
    )


def summary(looks: Sequence[Mapping[str, Any]]) -> str:
    """What the looks of a study came to; "" before the first one."""
    if not looks:
        return ""
    cells = looks[-1]["cells"]
    counts = Counter("open" if not cell["answer"] else "answered" for cell in cells)
    still = sum(cell["goes_on"] for cell in cells)
    parts = [f"{counts['answered']} of {len(cells)} measured mixes and partitions have their answer"]
    parts += [f"{still} go{'es' * (still == 1)} on"] if still else []
    parts += [f"{counts['open']} stay{'s' * (counts['open'] == 1)} open"] if counts["open"] and not still else []
    return f"{', '.join(parts)}, after {len(looks)} look{'s' * (len(looks) != 1)}."
