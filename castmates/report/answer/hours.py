"""When a study was measured: all of it within some minutes, or in several sessions, with what it lost in each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from castmates.analysis.core import seconds, sessions
from castmates.analysis.effects.effects import LEVEL, by_session
from castmates.analysis.effects.pooling import without_hosts
from castmates.analysis.keys import LAUNCH
from castmates.english import counted, duration, listed, number, rounded
from castmates.report.answer.parts import Pair, percent
from castmates.report.results import Results, records
from castmates.report.text.words import chance
from castmates.study.spec import UNMANAGED

NAMED = 3  # pairs whose sessions are listed
LEAST = 0.001  # p that is not written out
MOST = 6  # sessions that are listed one by one
LONG_S = 2 * 3600.0  # more is not within an hour or two
Row = Mapping[str, Any]


def hours(results: Results, found: Sequence[Pair]) -> list[str]:
    """Sentences on the pairs, which are the most important ones; none where a model was played."""
    known = [pair for pair in found if pair.known]
    if results.platforms != ["measured"] or not known:
        return []
    rows = {(row["lead"], row["mix"]): row for row in _rows(results)}
    of_one_node = [(pair, rows[pair.lead, pair.mix]) for pair in known if (pair.lead, pair.mix) in rows]
    drift = [*_drift(of_one_node)]
    several = [(pair, row) for pair, row in of_one_node if row["sessions"] > 1]
    if not several:
        return [*_within_one(results), *drift]
    windows = results.windows
    table = by_session(without_hosts(results.plan, windows, results.plan.ignored_hosts), windows)
    parts = {mix: records(part) for mix, part in table.groupby("mix", observed=True)}
    each = [_of_pair(pair, row, parts[pair.mix]) for pair, row in several[:NAMED] if pair.mix in parts]
    return [*each, *drift]


def _rows(results: Results) -> Iterator[Row]:
    """The losses that were measured on one node; of what is not pooled, none."""
    for rows in results.against_alone.values():
        yield from (row for row in rows if row["partition"] == UNMANAGED and row["nodes"] < 2 and not row["machine"])


def _drift(found: Sequence[tuple[Pair, Row]]) -> Iterator[str]:
    """The losses that are proven to drift, each with its p. Where sessions differ, that alone may look like a drift."""
    parts = [
        f"{pair.program} beside {pair.antagonists} (p {_p(row['drift_p_holm'])})"
        for pair, row in found
        if row["drift_p_holm"] < LEVEL and not row["sessions_p_holm"] < LEVEL
    ]
    more = [f"{len(parts) - NAMED} more"] if len(parts) > NAMED else []
    if parts:
        yield f"A drift over time is proven in the loss of {listed([*parts[:NAMED], *more])}."


def _within_one(results: Results) -> Iterator[str]:
    """How long the only session took; nothing where there were several, or it is not known.

    Reused controls are left out: when they were measured says nothing of the losses.
    """
    reused = [(record.cohort, record.number) for record in results.measured_records if record.reused]
    launches = results.launches[results.launches["status"] == "measured"].set_index(LAUNCH)
    measured = launches.drop(index=reused, errors="ignore")
    begin = seconds(measured["started"])
    if begin.isna().any() or sessions(begin).nunique() != 1:
        return
    took = float((begin + measured["total_seconds"].fillna(0.0)).max() - begin.min())
    other = "hour" if took < LONG_S else "day"
    yield f"All of it was measured within {duration(took)}: another {other} may differ (castmates sweep --sessions)."


def _of_pair(pair: Pair, row: Row, parts: Sequence[Row]) -> str:
    """The loss in each session, whether they differ, and what another one would show."""
    each = [_of_session(part) for part in parts]
    if len(each) > MOST:
        lost = [part["loss_pct"] for part in parts]
        rest = f"; {number(min(lost))} to {percent(max(lost))} in all {len(parts)}"
        each = [f"{each[0]}, …, {each[-1]}{rest}"]
    sentences = [f"{pair.program} beside {pair.antagonists}, by session: {', '.join(each)}."]
    p = row["sessions_p_holm"]
    if not math.isnan(p):
        differ = "Sessions differ" if p < LEVEL else "That sessions differ is not proven"
        sentences.append(f"{differ} (p {_p(p)}).")
    if math.isnan(row["hour_low"]):
        sentences.append("It takes three sessions to say what another hour would show.")
    else:
        ends = f"{rounded(row['hour_low'])} to {percent(row['hour_high'])}"
        sentences.append(f"Another session of as many launches would show {ends} (95 %).")
    return " ".join(sentences)


def _p(p: float) -> str:
    """< 0.001, = 0.023."""
    return chance(p) if p < LEAST else f"= {chance(p)}"


def _of_session(part: Row) -> str:
    """5.5 % [4.1, 6.9] (2026-11-28 14:05 UTC, 3 launches); no interval below three launches."""
    begin = datetime.fromtimestamp(part["begin"], UTC)
    ends = "" if math.isnan(part["loss_low"]) else f" [{number(part['loss_low'])}, {number(part['loss_high'])}]"
    return f"{percent(part['loss_pct'])}{ends} ({begin:%Y-%m-%d %H:%M} UTC, {counted(part['launches'], 'launch')})"
