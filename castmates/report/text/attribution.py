"""What each lead's loss is due to, in words: sentences for the verdict, lines for the page's table."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from castmates.analysis.effects.verdicts import EFFECT_LEVEL, GAIN, LOSS, NO_LOSS, TOO_FEW
from castmates.analysis.partitions.attribution_parts import (
    CAPACITY,
    DESPITE,
    DETAILS,
    NAMED,
    NOT_GIVEN_BACK,
    ONLY,
    SHARING,
    TOTAL,
)
from castmates.english import by_reason
from castmates.report.results import Results, records
from castmates.report.text.health import WITHIN
from castmates.report.text.words import BIASED, Quantity, counted, launches, percent_of, plain
from castmates.study.mitigations import place_of

Row = Mapping[str, Any]


def mixes(results: Results) -> Iterator[tuple[Row, list[Row]]]:
    """The total of each mix on each platform, with all its parts in their order."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in records(results.attribution):
        groups.setdefault((row["mix"], row["member"], row["platform"]), []).append(row)
    for rows in groups.values():
        yield rows[0], [row for row in rows if row["part"] != TOTAL]


def leaves(parts: list[Row]) -> list[Row]:
    """The parts that consist of no others: they stand side by side in the waterfall."""
    split = any(row["part"] in DETAILS for row in parts)
    return [row for row in parts if not (split and row["part"] == NOT_GIVEN_BACK)]


def who(total: Row) -> str:
    """`bert-train beside stream`."""
    return f"{plain(total['lead'])} beside {plain(total['antagonists'])}"


def isolation(total: Row) -> str:
    """Under which partition they were isolated, how that was found, and on how many launches; or why they were not."""
    estimated = counted(int(total["launches"]), "launch")
    if not total["partition"]:
        return f"{total['note']}; {estimated}" if total["launches"] else str(total["note"])
    how = {NAMED: "named in the study", ONLY: "the only partition that isolates"}.get(
        total["how"], f"chosen of {total['candidates']} on {counted(int(total['launches_choosing']), 'launch')}"
    )
    others = f"{total['launches']} others" if total["launches_choosing"] else estimated
    note = f"; {total['note']}" if total["note"] else ""
    return f"isolated under {total['partition']} ({ways(total)}), {how}; estimated on {others}{note}"


def separations(results: Results) -> list[tuple[str, str]]:
    """How the parts of pairs were told apart, each way once, and of which pairs; nothing without partitions."""
    if not results.partitioned:
        return []
    totals = [total for total, _ in mixes(results) if total["launches"]]
    return by_reason((who(total), isolation(total) if total["partition"] else str(total["note"])) for total in totals)


def same_for_all(results: Results) -> str:
    """How parts were told apart, where that is the same for all pairs; "" where it is not."""
    how = [reason for reason, _ in separations(results)]
    return how[0] if len(how) == 1 else ""


def ways(total: Row) -> str:
    """`4 of 11 ways`."""
    own, all_ways = total["lead_ways"], total["cache_ways"]
    return f"{own} of {all_ways} ways" if all_ways == all_ways and str(all_ways) != "<NA>" else f"{own} ways"


def sentences(results: Results) -> list[str]:
    """What cache ways give back to each pair, as whole sentences."""
    comparisons = int((results.attribution["p_value"].notna() & (results.attribution["part"] == CAPACITY)).sum())
    return [
        f"{who(total)}: {_given_back(row, results.margin, comparisons)}{BIASED if row['possibly_biased'] else ''}."
        for total, parts in mixes(results)
        for row in parts
        if row["part"] == CAPACITY
    ]


ON_CHIPLETS = (
    "Each last-level cache of a package has its own way to memory here, so what a pair loses despite own ways may be "
    "due to that way as well as to memory."
)
FARTHER = "socket"  # the place of antagonists around another cache of the lead's socket


def despite(results: Results) -> list[str]:
    """What no mask gives back on chiplets, and what the same antagonists cost around another cache of the socket."""
    pairs = [(total, {row["part"]: row for row in parts}) for total, parts in mixes(results)]
    losing = [
        (total, parts[DESPITE]) for total, parts in pairs if DESPITE in parts and parts[DESPITE]["verdict"] == LOSS
    ]
    if not losing or not results.machine.chiplets:
        return []
    farther = {(total["lead"], total["antagonists"], total["platform"]): parts.get(SHARING) for total, parts in pairs}
    told = []
    for total, row in losing:
        names = str(total["antagonists"]).removesuffix(f":{place_of(total['mix'])}")
        if far := farther.get((total["lead"], f"{names}:{FARTHER}", total["platform"])):
            near, away = (Quantity.of(each, "points", "points").whole for each in (row, far))
            told.append(f"{who(total)}: {near} despite own ways; around another cache of the socket they take {away}.")
    advice = "" if len(told) == len(losing) else f" The same mix with 'distance: {FARTHER}' tells them apart."
    return [ON_CHIPLETS + advice, *told]


def _given_back(row: Row, margin: float | None, comparisons: int) -> str:
    """Describe it in points of the rate alone, as far as the interval of these very points allows."""
    own, verdict = ways(row), row["verdict"]
    if verdict == TOO_FEW:
        found = f"within {launches(row['launches'])} {_gave_back(row)} ({row['partition']})"
        return f"{found}, and nothing more can be concluded"
    low, high = row["points_low"], row["points_high"]
    points = Quantity.of(row, "points", "points")
    about = f"{row['partition']}, {_launches(row)}"
    if verdict == LOSS and low > 0:
        return f"{own} give back {points.whole} ({about})"
    if verdict == GAIN and high < 0:
        return f"under {own} it loses {-points} more ({about})"
    if verdict in (LOSS, GAIN):
        done = "give something back" if verdict == LOSS else "cost something"
        return f"{own} {done}, but the data do not show how many points ({points.whole}; {about})"
    if verdict == NO_LOSS:
        size = percent_of(margin) if margin is not None else "the study's margin"
        return f"{own} change its rate by no more than {size} ({points.whole}; {about})"
    if round(low, 1) > 0 or round(high, 1) < 0:
        alone = row["p_value"] < EFFECT_LEVEL  # that Holm's adjustment alone makes it unclear
        chance = f"chance can produce as much in {counted(comparisons, 'comparison')}"
        but = chance if alone else "in log terms, by which it is judged, the interval holds zero"
        return f"{own} may {'give back' if low > 0 else 'cost'} something ({points.whole}; {about}), but {but}"
    return f"the data do not show whether {own} give anything back ({points.whole}; {about})"


def _gave_back(row: Row) -> str:
    """What was seen in too few launches: a gift or a loss, with the interval within launch where there is one."""
    points = Quantity(row["points"], *ends(row), "points")
    return f"it lost {-points} more under {ways(row)}" if points.value < 0 else f"{ways(row)} gave back {points}"


def _launches(row: Row) -> str:
    chose = int(row["launches_choosing"])
    if not chose:
        return counted(int(row["launches"]), "launch")
    return f"chosen on {counted(chose, 'launch')}, estimated on {int(row['launches'])} others"


def fewer_rounds(results: Results, total: Row) -> str:
    """`15 of 18 rounds`, where the total is made of fewer launches or rounds than the loss of the same pair."""
    effects = results.lead_effects("alone")
    same = effects[(effects["mix"] == total["mix"]) & (effects["member"] == total["member"])]
    for effect in records(same[same["platform"] == total["platform"]]):
        for what, thing in (("launches", "launch"), ("rounds", "round")):
            if total[what] < effect[what]:
                return f"{int(total[what])} of {counted(int(effect[what]), thing)}"
    return ""


def ends(row: Row) -> tuple[float, float]:
    """The interval of the points between launches; within launch if there is none."""
    if math.isnan(row["points_low"]):
        return row["points_within_low"], row["points_within_high"]
    return row["points_low"], row["points_high"]


def _interval(row: Row) -> str:
    found = Quantity(row["points"], *ends(row)).interval
    return found + (WITHIN if math.isnan(row["points_low"]) else "") if found else "–"


def rows(results: Results) -> list[dict[str, Any]]:
    """The lines of the page's table, one for each part of each mix."""
    lines = []
    for total, parts in mixes(results):
        for row in [total, *parts]:
            lines.append(
                {
                    **row,
                    "who": who(total),
                    "interval": _interval(row),
                    "half": (ends(row)[1] - ends(row)[0]) / 2,
                    "isolation": isolation(total),
                    "fewer": fewer_rounds(results, total) if row["part"] == TOTAL else "",
                }
            )
    return lines
