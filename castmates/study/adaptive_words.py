"""What the looks of an adaptive study decided, in words."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from castmates.english import listed
from castmates.study.questions import MARGIN, Question

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
