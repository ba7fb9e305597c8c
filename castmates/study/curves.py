"""Curves of a mix: partitions that give more and more of one thing, over which a rate only rises or only falls.

A curve is what an adaptive study need not measure in full: what lies between two measured cells is bounded by them.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from castmates.english import listed
from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.scenes import scenes_of
from castmates.study.spec import UNMANAGED, Cohort, Launch, Mix, Partition, Scene, Share

WAYS, OTHERS_WAYS, QUOTA, BANDWIDTH = "ways", "ways of the others", "quota", "bandwidth of the others"
ALL_OF_IT = 100.0  # per cent of CPU time: what antagonists have without a quota
FEWEST = 4  # cells of a curve that is not measured in full from the start
FIRST_GRID = 5  # cells of a long curve that are measured first
LONG = 9  # cells


@dataclass(frozen=True)
class Cell:
    """One partition of a mix; of an unmanaged mix, UNMANAGED."""

    identity: str  # of the mix that has it
    mix: str
    partition: str
    amount: float


@dataclass(frozen=True)
class Curve:
    """The cells of one kind of partition, in the order in which the lead's rate does not fall."""

    mix: str
    family: str  # what they are called without the amount
    unit: str
    cells: tuple[Cell, ...]

    @property
    def first_grid(self) -> list[Cell]:
        """The cells that are measured first: both ends, and some between them at equal distances."""
        count = len(self.cells)
        if count < FEWEST:
            return list(self.cells)
        wanted = FIRST_GRID if count >= LONG else FEWEST if count > FIRST_GRID else FEWEST - 1
        places = {round(step * (count - 1) / (wanted - 1)) for step in range(wanted)}
        return [self.cells[place] for place in sorted(places)]


def curves(mixes: Iterable[Mix]) -> list[Curve]:
    """The curves of these mixes; partitions that lie on none are not in them, nor are mixes without partitions."""
    unmanaged: dict[tuple[str, ...], Mix] = {}
    kinds: dict[tuple[str, str, object], list[Cell]] = {}
    members: dict[str, tuple[str, ...]] = {}
    for mix in mixes:
        members[mix.name] = (mix.lead, *mix.antagonists)
        if not mix.partitions:
            unmanaged[members[mix.name]] = mix
        for partition in mix.partitions:
            if (found := _amount(mix, partition)) is not None:
                unit, amount, kind = found
                cell = Cell(mix.identity, mix.name, partition.name, amount)
                kinds.setdefault((mix.name, unit, kind), []).append(cell)
    return [
        Curve(name, kind if isinstance(kind, str) else unit, unit, _in_order(cells, unit, unmanaged.get(members[name])))
        for (name, unit, kind), cells in kinds.items()
        if len({cell.amount for cell in cells}) == len(cells) > 1
    ]


def measured_later(mixes: Sequence[Mix]) -> tuple[str, ...]:
    """Identities of the mixes that an adaptive study does not measure at first, in the order of the mixes."""
    waiting = {cell.identity for curve in curves(mixes) for cell in curve.cells}
    waiting -= {cell.identity for curve in curves(mixes) for cell in curve.first_grid}
    return tuple(dict.fromkeys(mix.identity for mix in mixes if mix.identity in waiting))


def _in_order(cells: Iterable[Cell], unit: str, unmanaged: Mix | None) -> tuple[Cell, ...]:
    """From the cell where the lead is slowest; quotas end at the mix without one, which is all of the CPU time."""
    own = list(cells)
    if unit == QUOTA and unmanaged is not None:
        own.append(Cell(unmanaged.identity, unmanaged.name, UNMANAGED, ALL_OF_IT))
    return tuple(sorted(own, key=lambda cell: cell.amount, reverse=unit != WAYS))


def _amount(mix: Mix, partition: Partition) -> tuple[str, float, object] | None:
    """What a partition gives so much of, where the lead's rate follows from that alone; and what else it is."""
    shares = {share.member: share for share in partition.shares}
    others = [shares.get(name) for name in mix.antagonists]
    if (own := mask_of(shares.get(mix.lead))) is not None:
        return WAYS, float(masks.popcount(own)), partition.curve or partition.name
    if mix.lead in shares or not others or None in others:
        return None
    alike: Mapping[str, set[float | None]] = {
        QUOTA: {share.quota for share in others if share},
        OTHERS_WAYS: {_ways(share) for share in others if share},
        BANDWIDTH: {share.bandwidth for share in others if share},
    }
    given = {unit: values for unit, values in alike.items() if values != {None}}
    if len(given) != 1:
        return None
    unit, values = given.popitem()
    amount = values.pop()
    kind = {(share.period, bool((mask_of(share) or 0) & 1)) for share in others if share}  # where masks begin
    return None if values or amount is None else (unit, float(amount), frozenset(kind))


def _ways(share: Share) -> float | None:
    mask = mask_of(share)
    return None if mask is None else float(masks.popcount(mask))


# A share in the kernel's words: `L3:0=00f;1=00f MB:0=50;1=50`.


def schemata_of(share: Share, domains: Iterable[int], cache: Cache) -> str:
    """A group's schemata on these last-level caches."""
    data = cache.usable if share.ways is None else share.ways
    lines = {"L3": masks.text_of(data, cache.ways)} if cache.ways else {}
    if cache.cdp:
        code = data if share.code is None else share.code
        lines = {"L3CODE": masks.text_of(code, cache.ways), "L3DATA": masks.text_of(data, cache.ways)}
    if cache.bandwidth is not None:
        unthrottled = cache.bandwidth.allowed or cache.bandwidth.most
        lines["MB"] = str(unthrottled if share.bandwidth is None else share.bandwidth)
    places = list(domains)
    return " ".join(f"{name}:{';'.join(f'{place}={value}' for place in places)}" for name, value in lines.items())


def mask_of(share: Share | None) -> int | None:
    """The mask of everything that a member may fill, code and data; None where it has all.

    Where its caches differ, it is the one with the fewest ways.
    """
    if share is None or share.ways is None:
        return None
    if share.by_cache:
        return min((mask for _, mask in share.by_cache), key=masks.popcount)
    return masks.union([share.ways, share.code or 0])


def overlap(one: Share, other: Share) -> bool:
    """Whether these have ways in common, on any cache; one that does not differ between caches is alike on all."""
    ours, theirs = dict(one.by_cache), dict(other.by_cache)
    whole, others = mask_of(one), mask_of(other)
    if whole is None or others is None:
        return True
    if ours and theirs:
        return any(ours[cache] & theirs[cache] for cache in ours.keys() & theirs.keys())
    return any(mine & its for mine in ours.values() or [whole] for its in theirs.values() or [others])


# Launches of an adaptive study: which mixes one measures, by what the looks before it decided.


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
