"""Variants of leads in words: are they more or less sensitive than the lead as it is, and how fast are they?"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from castmates.analysis.effects.verdicts import LESS_SENSITIVE, MORE_SENSITIVE, NO_DIFFERENCE, TOO_FEW
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, Row, as_loss, chance, listed, number, percent_of, plain
from castmates.study.spec import UNMANAGED

PROVEN = (LESS_SENSITIVE, MORE_SENSITIVE)
NAMED = 3  # antagonists that a sentence names of a kind


def sentences(results: Results) -> list[str]:
    """One for each variant, and what they all have in common; none in a study without variants."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in records(results.variant_effects):
        if row["partition"] == UNMANAGED:
            groups.setdefault((row["lead"], row["variant"], row["platform"]), []).append(row)
    said = [_sentence(rows, results.margin) for rows in groups.values()]
    tests = int(results.variant_effects["p_value"].notna().sum())
    return [*said, *_of_all(tests)]


def rows(results: Results) -> list[dict[str, Any]]:
    """The table of the page."""
    return [_row(row) for row in records(results.variant_effects)]


def beside(row: Row) -> str:
    """Beside whom, and under which partition."""
    where = "" if row["partition"] == UNMANAGED else f" under {row['partition']}"
    return f"{plain(row['antagonists']).replace('+', ' + ')}{where}"


def name_of(row: Row) -> str:
    """bert-infer, int8 (precision int8)."""
    return f"{row['variant']} ({row['words']})" if row["words"] else str(row["variant"])


def _sentence(rows: Sequence[Row], margin: float | None) -> str:
    first = rows[0]
    parts = [*_proven(rows, LESS_SENSITIVE), *_proven(rows, MORE_SENSITIVE)]
    if same := [beside(row) for row in rows if row["verdict"] == NO_DIFFERENCE]:
        limit = f" within {percent_of(margin)}" if margin is not None else ""
        parts.append(f"as sensitive{limit} beside {listed(same)}")
    if few := [beside(row) for row in rows if row["verdict"] == TOO_FEW]:
        parts.append(f"not known beside {listed(few)} (too few launches)")
    known = (*PROVEN, NO_DIFFERENCE, TOO_FEW)
    if unclear := [beside(row) for row in rows if row["verdict"] not in known]:
        parts.append(f"unclear beside {listed(unclear)}")
    return f"{first['lead']} as {name_of(first)}: {'; '.join(parts)}.{_speed(first)}"


def _proven(rows: Sequence[Row], verdict: str) -> Iterator[str]:
    """Less sensitive beside stream, where it loses 10.1 % and not 21.9 %: …."""
    own = sorted((row for row in rows if row["verdict"] == verdict), key=lambda row: -abs(math.log(row["ratio"])))
    if own:
        parts = [
            f"{beside(row)}, where it loses {number(as_loss(row['slowdown']))} % and the lead as it is "
            f"{number(as_loss(row['base_slowdown']))} % (ratio of slowdowns {Quantity.of(row, 'ratio', digits=3)})"
            for row in own[:NAMED]
        ]
        more = f", and {len(own) - NAMED} more" if len(own) > NAMED else ""
        yield f"{verdict} beside {'; beside '.join(parts)}{more}"


def _speed(row: Row) -> str:
    if math.isnan(row["speed"]):
        return ""
    counted = "" if row["work"] == 1 else f", a step counted as {row['work']:g}"
    return f" Alone it is {Quantity.of(row, 'speed', digits=3)} times as fast{counted}."


def _of_all(tests: int) -> Iterator[str]:
    if tests:
        more = f" Verdicts of all {tests} comparisons together hold at 5 % (Holm)." if tests > 1 else ""
        yield (
            "A variant and its lead run in different launches: ratios of slowdowns compare losses that are each paired "
            f"within seconds, ratios of speed do not.{more}"
        )


def _row(row: Row) -> dict[str, Any]:
    return {
        **row,
        "name": name_of(row),
        "beside": beside(row),
        "loss": as_loss(row["slowdown"]),
        "base_loss": as_loss(row["base_slowdown"]),
        "said_loss": str(Quantity.loss(row)),
        "said_base": str(Quantity.loss(row, "base_slowdown")),
        "said_ratio": str(Quantity.of(row, "ratio", digits=3)),
        "said_speed": str(Quantity.of(row, "speed", digits=3)),
        "said_p": chance(row["p_holm"]),
    }
