"""Predictions in words: how much was measured, how far off they are, and which pairs are worth measuring."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from castmates.analysis.prediction.pairs import FEWEST
from castmates.analysis.prediction.table import CHECK, GRID, PROFILE, SEVERAL, Quality, both_roles, quality
from castmates.english import counted, number
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, plain
from castmates.study.spec import Prediction

PUBLISHED = "1 to 2 %"  # Bubble-Up's error, of pairs on its machine
WORTH = 5  # pairs that are named
FEWEST_BOTH = 3  # losses in both roles, below which nothing is said of them
Row = Mapping[str, Any]


def context(results: Results) -> dict[str, Any]:
    """What the section of the page is made of."""
    table = results.predictions
    limit = results.study.recommend.lead_loss if results.study else None
    return {
        "sentences": [
            *sentences(table, results.plan.prediction, int(results.launches["windows"].sum())),
            *(role_words(results.effects) if len(table) else ()),
        ],
        "worth": worth_measuring(table, limit) if len(table) else [],
        "rows": [_row(row) for row in records(table)],
        "profiles": [
            {**row, "source": source_of(row), "loss": Quantity.of(row, "loss_pct"), "equivalents": equivalents_of(row)}
            for row in records(results.profiles)
        ],
    }


def _row(row: Row) -> Row:
    return {
        **row,
        "source": source_of(row),
        "how": row["how"] or "\N{EN DASH}",
        "guessed": row["source"] == "predicted",
        "loss": Quantity.of(row, "loss_pct"),
        "without": Quantity.of(row, "without_pct"),
    }


def sentences(predictions: pd.DataFrame, grid: Prediction | None, windows: int) -> Iterator[str]:
    """What was measured, what is predicted, and how good that is."""
    if predictions.empty:
        return
    yield from measured_words(predictions, grid, windows)
    yield from quality_words(predictions)
    if (lacking := predictions["source"] == "").any():
        count = int(lacking.sum())
        yield (
            f"{counted(count, 'pair')} can be neither shown nor predicted: nothing was measured of "
            f"{'its' if count == 1 else 'their'} lead, or of {'its' if count == 1 else 'their'} antagonist."
        )


def measured_words(predictions: pd.DataFrame, grid: Prediction | None, windows: int) -> Iterator[str]:
    """How many losses of the grid were measured, in how many mixes, and how many are predicted."""
    own = predictions[predictions["part"].isin([GRID, CHECK])]
    lead, other, guessed = ((own["how"] == "as lead").sum(), (own["how"] == "as antagonist").sum(), _guessed(own).sum())
    if grid is not None:
        whole, fitted = len(grid.leads) * len(grid.antagonists), fitted_mixes(predictions)
        profiles = f", {grid.profiles} of them planned with bubbles or reporters," if grid.profiles else ","
        check = f" {counted(len(grid.check), 'further mix')} checked it." if grid.check else ""
        yield (
            f"The model is fitted to {fitted} mixes of two{profiles} which are {100 * fitted / whole:.0f} % of the "
            f"grid's {whole} pairs.{check} The whole study has {windows} windows."
        )
    yield (
        f"Of {len(own)} losses {lead} were measured of the lead of a mix and {other} of the antagonist in one; "
        f"{guessed} are predicted."
    )


def fitted_mixes(predictions: pd.DataFrame) -> int:
    """How many mixes of two a fit has seen: the most of any class of nodes."""
    own = predictions[predictions["part"].isin([GRID, PROFILE]) & (predictions["how"] == "as lead")]
    return int(own.groupby(["platform", "machine"]).size().max()) if len(own) else 0


def quality_words(predictions: pd.DataFrame) -> Iterator[str]:
    """How far off predictions were: left out one by one, on fresh mixes, of several antagonists."""
    yield _off(quality(predictions, GRID), "Left out one mix after the other, predicted losses of measured pairs")
    fresh, several = quality(predictions, CHECK), quality(predictions, SEVERAL)
    if fresh.count:
        # Only these are no part of what the intervals were made from.
        inside = f" {found_inside(fresh)}" if fresh.with_interval else ""
        yield _off(fresh, "On fresh measured mixes, which the model never saw, predicted losses") + inside
    if several.count:
        yield _off(several, "Beside several antagonists, predicted losses")
    if fresh.count or several.count or quality(predictions, GRID).count:
        yield f"Bubble-Up reports an error of {PUBLISHED} on its machine (Mars and others, MICRO 2011)."
    known = predictions[_guessed(predictions)]
    if len(known) and known["loss_low"].isna().any():
        yield f"Predictions without an interval: 95 % need {FEWEST} measured losses of their kind."
    if _from_reporters(predictions):
        yield (
            f"Fewer than {FEWEST} losses of the grid's leads could be left out, so the intervals of pairs are made of "
            "the errors of reporters too: these lose more than most, and the intervals may be far too wide."
        )


def role_words(effects: pd.DataFrame) -> Iterator[str]:
    """Whether what an antagonist of a mix loses is what a lead would lose, where both were measured."""
    found = both_roles(effects)
    if found.count < FEWEST_BOTH:
        return
    more = "more" if found.mean > 0 else "less"
    yield (
        f"{found.count} losses were measured in both roles: as lead they are {number(abs(found.mean))} points {more} "
        f"than as antagonist on average, and {number(found.off)} points apart. Each has its noise; on a real machine "
        "members also differ by role in their CPU and in which pages of the memory they were given."
    )


def _from_reporters(predictions: pd.DataFrame) -> bool:
    """Whether pairs of the grid have intervals that the losses of its leads alone would not have given."""
    own = predictions[predictions["part"] == GRID]
    return any(
        rows["error"].notna().sum() < FEWEST and rows.loc[_guessed(rows), "loss_low"].notna().any()
        for _, rows in own.groupby(["platform", "machine"])
    )


def _off(found: Quality, what: str) -> str:
    if not found.count:
        return f"{what} cannot be compared: without its mix none has both a lead and an antagonist that are known."
    return (
        f"{what} are off by {number(found.mean)} points on average and {number(found.largest)} at most "
        f"({counted(found.count, 'loss')})."
    )


def found_inside(found: Quality) -> str:
    """How many intervals contain what was measured."""
    return f"{found.inside} of {found.with_interval} lie in the predicted 95 % interval."


def worth_measuring(predictions: pd.DataFrame, limit: float | None) -> list[str]:
    """The predicted pairs that are worth measuring: those that may be on either side of a limit, the widest first."""
    rows: list[dict[Any, Any]] = predictions[_guessed(predictions)].to_dict("records")
    open_ = [row for row in rows if limit is not None and row["loss_low"] < limit < row["loss_high"]]
    chosen = sorted(open_ or rows, key=_width, reverse=True)[:WORTH]
    why = f"which may lose more or less than {number(limit)} %" if open_ and limit is not None else "the least certain"
    return [f"{pair_of(row)} {loss_of(row)}, {why}" for row in chosen]


def pair_of(row: Row) -> str:
    """chase beside stream."""
    return f"{plain(row['lead'])} beside {plain(row['antagonists'])}"


def loss_of(row: Row) -> str:
    """12.3 % [10.1, 14.0]."""
    return "unknown" if math.isnan(row["loss_pct"]) else str(Quantity.of(row, "loss_pct", "%"))


def source_of(row: Row) -> str:
    """Where a loss comes from: measured, modelled, predicted; predicted from a model of a machine."""
    if row["source"] == "measured":
        return str(row["platform"])
    if row["source"] == "predicted":
        return "predicted" if row["platform"] == "measured" else f"predicted ({row['platform']})"
    return "not known"


def equivalents_of(row: Row) -> str:
    """The dials beside which the reporter would lose as much: 5.2 MiB, 3.1 GB/s."""
    known = ((row["equivalent_mib"], "MiB"), (row["equivalent_gb_s"], "GB/s"))
    return ", ".join(f"{number(value)} {unit}" for value, unit in known if not math.isnan(value))


def _width(row: Row) -> float:
    width = row["loss_high"] - row["loss_low"]
    return math.inf if math.isnan(width) else float(width)


def _guessed(table: pd.DataFrame) -> "pd.Series[bool]":
    return table["source"] == "predicted"
