"""Sensitivity and recommendations -> plain sentences, and the rows of the page's tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from castmates.analysis.core import once
from castmates.analysis.effects.verdicts import TOO_FEW, UNCLEAR
from castmates.analysis.partitions import recommendation as verdicts
from castmates.analysis.partitions import sensitivity
from castmates.analysis.partitions.held import BEYOND, OTHERWISE, SHARED, UNCERTAIN
from castmates.report.results import Results, records
from castmates.report.text.words import AS_FAST, Quantity, between_with_others, counted, number, plain
from castmates.study.node_classes import cache_of
from castmates.study.rehearsing import NO_EFFECT, PLATFORM
from castmates.study.spec import UNMANAGED

Row = Mapping[str, Any]
_PRICED = ["mix", "platform", "partition", "member", "loss_pct", "loss_low", "loss_high"]
_PRINTED = {"loss": 1, "kept": 1, "stp": 2}  # with so many decimals


def context(results: Results) -> dict[str, Any]:
    """What the section of the page is made of."""
    knees, advice = results.knees, results.recommendations
    pareto = results.pareto
    return {
        "limit": _percent(float(advice["limit_pct"].iloc[0])) if len(advice) else "",
        "at_knees": bool((advice["aim"] == verdicts.KNEE).any()),
        "sentences": sentences(advice, results.effects, _command(results)),
        "recommended": [_row(row, results.effects) for row in records(advice)],
        "knees": [
            {**row, "said": knee_words(row), "estimate": count_of(row["knee"]), "measured": measured_ways(row, results)}
            for row in records(knees)
        ],
        "refused": refusals(pareto),
        "command": _command(results),
        "between": between_with_others(results.effects),
    }


def _command(results: Results) -> str:
    return f"castmates sweep {results.study_file or 'STUDY.yaml'} --confirm"


@dataclass(frozen=True)
class Paid:
    """What an antagonist loses under the partition of an advice, and without one; each with its interval."""

    who: str
    loss: Quantity  # per cent of its rate alone; NaN where it is not known
    without: Quantity


def paid(row: Row, effects: pd.DataFrame) -> list[Paid]:
    """The price of an advice: what each antagonist loses with and without it; nothing where no mask is named."""
    own = _of_antagonists(effects).get((row["mix"], row["platform"]))
    if own is None:
        return []
    with_, without = (own[own["partition"] == name].set_index("member") for name in (row["partition"], UNMANAGED))
    several = own.drop_duplicates("member")["member"].map(plain).duplicated(keep=False).any()
    return [
        Paid(name if several else plain(name), _loss_of(with_, name), _loss_of(without, name)) for name in with_.index
    ]


@once
def _of_antagonists(effects: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """What antagonists lose against alone, by mix and platform."""
    rows = effects.loc[(effects["role"] == "antagonist") & (effects["baseline"] == "alone"), _PRICED]
    return {(str(mix), str(platform)): own for (mix, platform), own in rows.groupby(["mix", "platform"], observed=True)}


def _loss_of(rows: pd.DataFrame, member: str) -> Quantity:
    return Quantity.of(records(rows.loc[[member]])[0], "loss_pct", "%") if member in rows.index else Quantity(math.nan)


def is_advised(row: Row) -> bool:
    """Whether a mask is advised: fresh launches that lose more than the limit take the advice back."""
    return row["verdict"] in verdicts.ADVISED and row["confirmation"] != verdicts.EXCEEDED


def sentences(advice: pd.DataFrame, effects: pd.DataFrame, command: str) -> list[str]:
    """A sentence for each mix."""
    return [sentence(row, command, paid(row, effects)) for row in records(advice)]


def sentence(row: Row, command: str, price: Sequence[Paid] = ()) -> str:
    """What is recommended for one mix, what it gives, what the others pay, and whether the processor holds it."""
    return f"{_advice(row, price, command)}{_doubt(row)}"


def _doubt(row: Row) -> str:
    """A remark where the processor may hold, or held, something else than the partition's masks."""
    name = row["partition"]
    if row.get("held") == UNCERTAIN:
        return (
            f" Masks of {name} have some but not all of the ways that I/O fills too, which some processors give "
            "together only: the lead and the others may share ways."
        )
    if row.get("held") == SHARED:
        return f" Other programs on the machine have ways of {name} too."
    if row.get("held") == BEYOND:
        return f" Members filled more ways than {name} gives them: its masks do not keep them apart."
    if row.get("held") == OTHERWISE:
        return f" Ways are those that the processor held under {name}, which are not those that were asked."
    return ""


def _advice(row: Row, price: Sequence[Paid], command: str) -> str:
    who, limit = f"{plain(row['lead'])} beside {plain(row['antagonists'])}", _percent(row["limit_pct"])
    if row["verdict"] == verdicts.NOT_NEEDED:
        return f"{who}: no partition is needed; {_without(row)}, within {limit}."
    if row["verdict"] == verdicts.OPEN:
        return f"{who}: no partition is recommended; {_open(row)}."
    if row["verdict"] == verdicts.NO_SWEEP:
        return (
            f"{who}: no partition that gives the lead its own ways was measured, so none can be recommended for a "
            f"loss of at most {limit}; add a sweep such as `split: all`."
        )
    if row["verdict"] == TOO_FEW:
        return (
            f"{who}: {counted(int(row['launches']), 'launch')} cannot show which lead mask keeps the loss within "
            f"{limit}; it takes at least three."
        )
    if row["verdict"] == verdicts.NOT_MET and row["aim"] == verdicts.KNEE:
        return (
            f"{who}: the largest lead mask that was tried does not keep {_kept(row)}; the best one is "
            f"{row['partition']} with {_lost(row, '')}."
        )
    if row["verdict"] == verdicts.NOT_MET:
        return f"{who}: no lead mask is shown to keep the loss within {limit}; {_nearest(row)}."
    fresh = confirmation(row, command)
    looked_at = f"{counted(int(row['launches']), 'launch')} and {counted(int(row['masks']), 'mask')}"
    chosen = f"This was chosen from {looked_at}"
    if row["aim"] != verdicts.KNEE:
        chosen += f"; at {100 * row['confidence']:.3g} % no more than {_least(row)}"
    return f"{who}: {bargain(row, price)}. {chosen}. {fresh}"


def bargain(row: Row, price: Sequence[Paid]) -> str:
    """What the advised mask leaves of the loss, what that gives the lead, and what the others pay: a clause."""
    one = "s" if count_of(row["lead_ways"]) == 1 else ""
    shown = row["confirmation"] == verdicts.YES or row["bound_pct"] <= row["limit_pct"]
    keep = f"keep{one}" if shown else f"seem{one} to keep"
    keep = "seemed to keep" if row["confirmation"] in (verdicts.EXCEEDED, UNCLEAR) else keep
    aim = _kept(row) if row["aim"] == verdicts.KNEE else f"the loss within {_percent(row['limit_pct'])}"
    without, faster = Quantity.of(row, "without_pct", "%"), Quantity.of(row, "faster", AS_FAST, 2).whole
    others = "".join(f"; {price_words(one)}" for one in price) or f"; {_others(row, '')}"
    return f"{ways(row)} {keep} {aim}: {_lost(row, '')} instead of {without}, {faster}{others}"


def fresh_words(row: Row) -> str:
    """Whether fresh launches have confirmed it, in few words."""
    return {
        verdicts.YES: "confirmed by fresh launches",
        verdicts.EXCEEDED: "but fresh launches lost more than the limit",
    }.get(row["confirmation"], "not confirmed by fresh launches yet")


def price_words(one: Paid) -> str:
    """`database` then loses 17.2 % [16.2, 18.2] instead of 10.9 % [10.2, 11.5]."""
    if math.isnan(one.loss.value):
        return f"what {one.who} then loses is not known"
    is_gain = _is_gain(one.loss)
    words = f"{one.who} then {'gains' if is_gain else 'loses'} {_size(one.loss)}"
    if math.isnan(one.without.value):
        return words
    before = _is_gain(one.without)
    return f"{words} instead of {'' if before == is_gain else 'gaining ' if before else 'losing '}{_size(one.without)}"


def _is_gain(loss: Quantity) -> bool:
    return loss.number.startswith("\N{MINUS SIGN}")


def _size(loss: Quantity) -> Quantity:
    """How much is lost or gained; a negative loss is a gain."""
    return -loss if _is_gain(loss) else loss


def _without(row: Row) -> str:
    """Without one it loses 0.4 % [−0.2, 1.0]."""
    loss = Quantity.of(row, "without_pct", "%")
    return f"without one it {'gains' if _is_gain(loss) else 'loses'} {_size(loss)}"


def _open(row: Row) -> str:
    """Why none is advised for a pair that may need one: a clause."""
    limit = _percent(row["limit_pct"])
    if math.isnan(row["without_low"]):
        return f"whether it loses more than {limit} without one is not known"
    if row["without_low"] > row["limit_pct"]:
        return f"{_without(row)}, but after Holm's adjustment this loss, or what a mask gives back of it, is not proven"
    return f"{_without(row)}, which is not proven to be more than {limit}"


def _kept(row: Row) -> str:
    return f"{_percent(100 - row['limit_pct'])} of its speed"


def ways(row: Row) -> str:
    """6 of 20 ways (split-6, 9 MiB)."""
    size = f", {_mib(row['lead_bytes'])}" if not math.isnan(row["lead_bytes"]) else ""
    of = f" of {row['cache_ways']}" if there(row["cache_ways"]) else ""
    one = count_of(row["lead_ways"]) == 1 and not of
    return f"{row['lead_ways']}{of} {'way' if one else 'ways'} ({row['partition']}{size})"


def _least(row: Row) -> str:
    """No more than 8.8 %; a bound below zero is a gain."""
    bound = row["bound_pct"]
    return f"{number(max(bound, 0.0))} % is lost"


def _lost(row: Row, prefix: str) -> str:
    """2.5 % [2.0, 3.0] lost; a negative loss is gained."""
    loss = Quantity.of(row, f"{prefix}loss_pct", "%")
    return f"{_size(loss)} {'gained' if _is_gain(loss) else 'lost'}"


def _others(row: Row, prefix: str) -> str:
    """What the antagonists keep, and what all get done together."""
    kept, stp = Quantity.of(row, f"{prefix}kept_pct", "%"), Quantity.of(row, f"{prefix}stp", digits=2)
    several = "+" in row["antagonists"]
    who = "the antagonists keep" if several else f"{plain(row['antagonists'])} keeps"
    if math.isnan(kept.value) or math.isnan(stp.value):
        return f"what {who} and the STP are unknown: no launch measured every member both alone and together"
    of = f"of {'their rates' if several else 'its rate'} alone"
    if not (kept.known and stp.known):
        return (
            f"{who} {kept.amount} {of} (STP {stp.amount}), without intervals: fewer than three launches have a "
            "pair of windows of every member"
        )
    return f"{who} {kept} {of} (STP {stp})"


def _nearest(row: Row) -> str:
    over = row["bound_pct"] - row["limit_pct"]
    points = "less than 0.1" if over < 0.05 else number(over)
    larger = int(row["larger_beyond"])
    if row["loss_pct"] > row["limit_pct"]:
        why = "the estimate is beyond it too"
    elif larger:
        masks = "a larger mask of its kind misses" if larger == 1 else f"{larger} larger masks of its kind miss"
        why = f"the estimate keeps it, but {masks} it too, so more launches of this one alone would not do"
    else:
        why = "the estimate keeps it, and more launches may show as much"
    return (
        f"{row['partition']} comes nearest with {_lost(row, '')} ({counted(int(row['launches']), 'launch')}), whose "
        f"upper bound of {number(row['bound_pct'])} % misses it by {points} points: {why}"
    )


def confirmation(row: Row, command: str) -> str:
    """What fresh launches show of it."""
    word = row["confirmation"]
    if word == verdicts.NOT_YET:
        return f"Not confirmed yet: run `{command}`."
    launches = counted(int(row["confirmed_launches"]), "fresh launch")
    if word == TOO_FEW:
        return f"Not confirmed: {launches} of {row['confirmed_in']} count, three are needed; run `{command}`."
    value = f"{_lost(row, 'confirmed_')} in {launches}{_apart(row)}"
    rest = _others(row, "confirmed_")
    if word == verdicts.YES:
        return f"Confirmed: {value}, while {rest}."
    if word == verdicts.EXCEEDED:
        return f"Not confirmed, the loss is beyond the limit: {value}; {rest}."
    return f"Not confirmed, the interval holds the limit: {value}; {rest}."


def _apart(row: Row) -> str:
    """How the fresh launches were measured where that differs, and how many other studies measured some."""
    others = int(row["confirmed_studies"]) - 1
    more = f"{others} other confirming stud{'y' if others == 1 else 'ies'} with no more launches" if others > 0 else ""
    remarks = "; ".join(filter(None, [row["confirmed_design"], more]))
    return f" ({remarks})" if remarks else ""


def knee_words(row: Row) -> str:
    """From how many ways on a lead keeps its rate."""
    low, high, verdict = row["knee_low"], row["knee_high"], row["verdict"]
    return {
        sensitivity.KNOWN: f"from {low} ways on",
        sensitivity.BETWEEN: f"from between {low} and {high} ways on",
        sensitivity.AT_LEAST: f"{low} ways or more; up to {row['most_ways']} are not shown to be enough",
        sensitivity.NOT_REACHED: f"not reached with up to {row['most_ways']} ways",
        TOO_FEW: f"unknown: {counted(int(row['launches']), 'launch')}, and at least three are needed",
    }[verdict]


def measured_ways(row: Row, results: Results) -> str:
    """4 to 8; a lead alone also keeps its rate with the whole cache, which its rates are compared with."""
    fewest, most = row["fewest_ways"], row["most_ways"]
    measured = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    cache = cache_of(results.plan, row["machine"])
    every = cache.ways if cache else 0
    if row["antagonists"] or not every or most >= every:
        return measured
    return f"{measured}, and all {every} (the baseline itself)"


def refusals(pareto: pd.DataFrame) -> list[str]:
    """Which launches of confirming studies do not count, and why."""
    return [
        f"{counted(int(row['refused']), 'launch')} of {row['source']} ({row['mix']} under {row['partition']}) "
        f"{'does' if row['refused'] == 1 else 'do'} not count: {row['why_refused']}."
        for row in records(pareto[pareto["refused"] > 0])
    ]


def _row(row: Row, effects: pd.DataFrame) -> dict[str, Any]:
    """A line of the table: search-time and confirmed estimate side by side."""
    cells: dict[str, object] = {"ways": count_of(row["lead_ways"])}
    cells["paid"] = "; ".join(price_words(one) for one in paid(row, effects))
    named = {f"{prefix}{name}": digits for prefix in ("", "confirmed_") for name, digits in _PRINTED.items()}
    for name, digits in (named | {"without": 1, "faster": 2}).items():
        column = f"{name}_pct" if f"{name}_pct" in row else name
        cells[f"{name}_shown"] = Quantity.of(row, column, digits=digits)
    return {**row, **cells}


def _percent(value: float) -> str:
    return f"{value:g} %"


def _mib(amount: float) -> str:
    return f"{amount / 2**20:.3g} MiB"


def count_of(value: object) -> float:
    """A whole number out of a table, or NaN where there is none."""
    return float(str(value)) if there(value) else math.nan


def there(value: object) -> bool:
    """Whether a cell of a table has a value."""
    return str(value) not in ("<NA>", "nan", "None")


def texts(advice: pd.DataFrame, effects: pd.DataFrame, command: str, refused: Sequence[str]) -> str:
    """What the command line prints."""
    platforms = sorted(advice["platform"].unique())
    note = "" if platforms == ["measured"] else f"Not measured: {', '.join(platforms)}.\n"
    note += f"{NO_EFFECT}\n" if PLATFORM in platforms else ""
    return note + "\n".join([*sentences(advice, effects, command), *refused]) + "\n"
