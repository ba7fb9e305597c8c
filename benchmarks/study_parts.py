"""What a study shows besides its losses: predictions, placement, looks, limits of services, means, variants."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks import verdicts
from benchmarks.precision import Floats
from benchmarks.sweeps import half_width, of_leads
from benchmarks.verdicts import Aim, Finding
from castmates.analysis.prediction.table import CHECK, GRID
from castmates.report.results import Results, records
from castmates.report.text import over_mixes, prediction, services, variants
from castmates.report.text.health import adaptive_sentence
from castmates.report.text.words import Quantity, number, plain

POINTS, SAVED, ERROR, GAIN = Aim(most=2.0), Aim(least=60.0), Aim(most=1.0), Aim(least=0.0)
MOST = 12  # groups of antagonists that fit beside each other
ALONE = "alone"
PROVEN = ("loss", "gain")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """A part of a study's section."""

    paragraphs: Sequence[str]
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    findings: Sequence[Finding] = ()


def losses(results: Results) -> tuple[list[str], list[list[str]]]:
    """The leads' losses without a partition: leads by antagonists, or one below the other where these are too many."""
    table = of_leads(results.effects)
    known = {(row["lead"], row["antagonists"]): _loss(row) for row in records(table)}
    leads, others = (list(dict.fromkeys(table[name])) for name in ("lead", "antagonists"))
    if len(others) > MOST:
        return ["lead", "beside", "loss"], [[lead, beside, loss] for (lead, beside), loss in known.items()]
    return ["lead", *others], [[lead, *(known.get((lead, each), "–") for each in others)] for lead in leads]


def _loss(row: Row) -> str:
    half = half_width(row)
    if not math.isfinite(half):
        return str(row["verdict"])
    text = f"{number(row['loss_pct'])} ± {number(half)}"
    return f"**{text}**" if row["verdict"] in PROVEN else text


def parts(results: Results, full: Results | None) -> Iterator[Part]:
    """Those that this study has."""
    if len(results.system_over_mixes):
        yield Part(over_mixes.sentences(results))
    if len(results.loads):
        yield Part([*services.advice(results), *services.saturated(results)])
    if len(results.predictions):
        yield predicted(results)
    if results.adaptive_looks:
        yield adaptive(results, full)
    if len(results.variant_effects):
        yield Part(variants.sentences(results))
    if (results.folder.place / "ways.parquet").is_file():
        yield placed(results)


def predicted(results: Results) -> Part:
    """How far predictions were off."""
    table = results.predictions
    windows = int(results.launches["windows"].sum())
    off = {part: _off(table, part) for part in (GRID, CHECK)}
    words = {GRID: "each mix left out in turn", CHECK: "fresh mixes, which the fit never saw"}
    findings = [
        verdicts.mean(f"mean error of predicted losses, {words[part]}", values, "points", "losses", POINTS)
        for part, values in off.items()
        if len(values)
    ]
    rows = [
        [prediction.pair_of(row), prediction.loss_of(row), f"{number(row['without_pct'])} %", number(row["error"])]
        for row in records(table[(table["part"] == CHECK) & table["error"].notna()])
    ]
    header = ["fresh mix", "measured", "predicted without it", "error, points"]
    sentences = [
        *prediction.sentences(table, results.plan.prediction, windows),
        *prediction.role_words(results.effects),
    ]
    return Part(sentences, header, rows, findings)


def _off(table: pd.DataFrame, part: str) -> Floats:
    return table.loc[(table["part"] == part) & table["error"].notna(), "error"].abs().to_numpy(float)


def adaptive(results: Results, full: Results | None) -> Part:
    """How much was saved, and what that cost."""
    curves, windows = results.curves, int(results.launches["windows"].sum())
    whole = results.adaptive_looks[-1]["full_windows"]
    saved = Finding(
        what="fewer windows than the full grid", value=100 * (1 - windows / whole), unit="%", count=1,
        of="sweeps", aim=SAVED,
    )  # fmt: skip
    sentences = [adaptive_sentence(results)]
    if full is None:
        return Part(sentences, findings=[saved])
    both = curves.merge(_grid(full), on=["lead", "antagonists", "partition"], suffixes=("", "_full"))
    off = (both["loss_pct"] - both["loss_pct_full"]).abs()
    twice = both["source"] == "measured"
    guessed = off[~twice]
    sentences.append(
        f"Beside the full grid, a separate study of {len(full.launches)} launches, {len(both)} cells differ by "
        f"{off.mean():.2f} points on average and by {off.max():.1f} at most; the {len(guessed)} interpolated ones by "
        f"{guessed.mean():.2f} and {guessed.max():.1f}, the {int(twice.sum())} that both have measured by "
        f"{off[twice].mean():.2f} and {off[twice].max():.1f}: so large are the errors of measurement alone, which are "
        "in all of these figures."
    )
    by_curve = off.groupby([both["lead"], both["antagonists"]]).mean()
    error = verdicts.mean("difference from a separate full grid", by_curve.to_numpy(), "points", "curves", ERROR)
    return Part(sentences, findings=[saved, error])


def _grid(full: Results) -> pd.DataFrame:
    """A row per measured cell of a full grid: what its lead lost."""
    table = full.effects
    own = table[(table["role"] == "lead") & (table["baseline"] == ALONE)]
    return own.rename(columns={"loss_pct": "loss_pct"})[["lead", "antagonists", "partition", "loss_pct"]]


def placed(results: Results) -> Part:
    """The advice, what it gains, and what fresh launches found."""
    groupings, ways = (pd.read_parquet(results.folder.place / f"{name}.parquet") for name in ("groupings", "ways"))
    gains = {row["way"]: float(row["gain_pct"]) for row in records(ways[ways["job"] == ""])}
    findings = [
        Finding(what=f"more done than {words}, expected", value=gains[way], unit="%", count=1, of="job lists", aim=GAIN)
        for way, words in (("random", "at random"), ("spreading", "by spreading"))
        if not math.isnan(gains.get(way, math.nan))
    ]
    fresh = groupings.drop_duplicates(["job", "beside"])
    fresh = fresh[fresh["agrees"] != ""]
    agree = int((fresh["agrees"] == "agrees").sum())
    sentences = ["`castmates advice --place`: the best groupings, and what fresh launches of them found (`--confirm`)."]
    sentences += [f"{agree} of {len(fresh)} losses agree with their fresh launches."] if len(fresh) else []
    header = ["rank", "job", "beside", "expected loss %", "limit %", "", "fresh launches %", ""]
    return Part(sentences, header, [_seat(row) for row in records(groupings)], findings)


def _seat(row: Row) -> list[str]:
    expected, fresh = (_pct(row, name) for name in ("loss", "fresh"))
    limit = "" if math.isnan(row["limit_pct"]) else f"{row['limit_pct']:g}"
    beside = plain(row["beside"]) or "alone"
    return [str(row["rank"]), row["job"], beside, expected, limit, row["keeps"], fresh, row["agrees"]]


def _pct(row: Row, name: str) -> str:
    loss = Quantity.of(row, f"{name}_pct")
    return "" if math.isnan(loss.value) else str(loss)
