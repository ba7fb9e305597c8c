"""The comparison of two studies -> plain sentences; pure, so that what they claim can be tested."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from castmates.analysis.effects.verdicts import LESS, MORE, NO_DATA, NO_DIFFERENCE, PLATFORMS_DIFFER, TOO_FEW
from castmates.analysis.statistics.intervals import FEWEST_UNITS
from castmates.report.comparison.compare import Compared
from castmates.report.results import records
from castmates.report.text.design import in_words, much_longer
from castmates.report.text.words import Quantity, Row, counted, listed, percent_of

VERBS = ("loses", "gains", "lost", "gained")  # written once for A and B
SHOWN = 8  # of a kind; the table has them all
YET = {MORE: "B is faster alone, but loses more beside", LESS: "B is slower alone, but loses less beside"}
NOT_PAIRED = (
    "Losses are paired within seconds inside each study. Rates of A and B were taken at different times, so the "
    "intervals of their ratios do not cover what else changed in between."
)


def sentences(compared: Compared) -> list[str]:
    """What stands before the table, the most important first."""
    return [
        compared.a.sentence,
        compared.b.sentence,
        *_platforms(compared),
        *_work(compared),
        *_settings(compared),
        *hours([compared]),
        *_slices(compared),
        *(_loss(row, compared.margin) for row in records(compared.leads(partitioned=False))[:SHOWN]),
        *_rates(compared),
        *_partitions(compared),
        *_masks(compared),
        *compared.equal,
        *compared.traffic,
        *_one_sided(compared),
    ]


def _platforms(compared: Compared) -> Iterator[str]:
    if compared.mixed:
        yield (
            f"A is {' and '.join(compared.a.platforms)} and B is {' and '.join(compared.b.platforms)}: what was "
            "measured and what was not stand side by side, and no interval contains both."
        )
    elif compared.origin:
        yield f"Both are {compared.origin}: they show a difference between models, not between machines."


def _work(compared: Compared) -> Iterator[str]:
    """Other programs outweigh any interval."""
    if compared.work:
        names = [what for what, _, _ in compared.work]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        yield f"Not the same in A and B: {', '.join(names[:SHOWN])}{more}; they may be behind a difference."


def _settings(compared: Compared) -> Iterator[str]:
    """What else differs, by name, in short."""
    if compared.differences:
        names = [what for what, _, _ in compared.differences]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        yield f"Machines, versions or designs differ too, as recorded: {', '.join(names[:SHOWN])}{more}."


def hours(pairs: Sequence[Compared], names: Mapping[str, str] = {}) -> Iterator[str]:
    """Of which studies intervals are over launches, so that they cover no other hours; letters by name."""
    few: dict[str, str] = {}
    for pair in pairs:
        rows = pair.leads(partitioned=False)
        if pair.mixed or pair.origin:
            continue
        for side, one in (("a", pair.a), ("b", pair.b)):
            if ((rows[f"sessions_{side}"] == 0) & (rows[f"launches_{side}"] > 0)).any():
                few[one.letter] = f"{names.get(one.letter, one.letter)} ({counted(one.sessions, 'session')})"
    if few:
        yield (
            f"All of this holds for the hours of {listed([*few.values()])}. Only from {FEWEST_UNITS} sessions on, with "
            "about as many launches each, do intervals cover other hours (castmates sweep --sessions)."
        )


def _slices(compared: Compared) -> Iterator[str]:
    """Whether turns of one length show other losses than much longer ones: effects of power need time."""
    ours, theirs = compared.a.slices, compared.b.slices
    if ours is None or theirs is None or not much_longer(ours, theirs):
        return
    lengths = f"Scenes took turns in slices of {in_words(*ours)} in A and of {in_words(*theirs)} in B."
    rows = records(compared.leads(partitioned=False))
    judged = [row for row in rows if row["verdict"] not in (NO_DATA, PLATFORMS_DIFFER, TOO_FEW)]
    if differing := [row for row in judged if row["verdict"] in (MORE, LESS)]:
        named = listed([f"{row['lead']} beside {_beside(row)}" for row in differing[:SHOWN]])
        yield (
            f"{lengths} The loss depends on it: {named}. Short slices spread over all scenes what builds up over "
            "seconds, such as a power limit; long ones show it where it is caused."
        )
    elif judged and all(row["verdict"] == NO_DIFFERENCE for row in judged):
        yield f"{lengths} Every loss is the same within {percent_of(compared.margin)}: short slices smear nothing here."
    else:
        yield f"{lengths} Whether short slices smear effects of power is not decided; more launches of both decide it."


def _loss(row: Row, margin: float) -> str:
    who = f"{row['lead']} beside {_beside(row)}" if row["antagonists"] else row["lead"]
    ours, theirs = _side(row, "a"), _side(row, "b")
    verb = ours.split(maxsplit=1)[0]
    losses = f"{who} {ours} in A and {theirs.removeprefix(f'{verb} ') if verb in VERBS else theirs} in B"
    many = f"{row['launches_a']} and {counted(int(row['launches_b']), 'launch')}"
    if row["verdict"] == NO_DATA:
        return f"{losses} ({many})."
    if row["verdict"] == PLATFORMS_DIFFER:
        return f"{losses}, in {many}; they are not compared because their platforms differ."
    found = change(row)
    if row["verdict"] == TOO_FEW:
        return f"{losses}; too few launches ({many}) to compare them."
    amount = f"{abs(found).whole} {'smaller' if found.value < 0 else 'larger'}"
    finding = {
        MORE: f"its slowdown is {amount} in B",
        LESS: f"its slowdown is {amount} in B",
        NO_DIFFERENCE: f"its slowdown differs by no more than {percent_of(margin)} ({amount} in B)",
    }.get(row["verdict"], f"unclear ({amount} in B)")
    return f"{losses}, in {many}: {finding}."


def change(row: Row) -> Quantity:
    """By how many per cent B's slowdown is above A's, with its interval."""
    return Quantity.made((100 * (row[name] - 1) for name in ("ratio", "ratio_low", "ratio_high")), "%")


def _side(row: Row, letter: str) -> str:
    slowdown = row[f"slowdown_{letter}"]
    if math.isnan(slowdown):
        return "has no data"
    loss = Quantity.loss(row, f"slowdown_{letter}", "%")
    if not loss.known:  # too few launches for an interval
        return f"gained {-loss} (no interval)" if slowdown < 1 else f"lost {loss} (no interval)"
    if round(loss.low, 1) <= 0 <= round(loss.high, 1):
        return f"shows no clear change ({loss})"
    return f"loses {loss}" if loss.value > 0 else f"gains {-loss}"


def _rates(compared: Compared) -> Iterator[str]:
    """Who is faster alone, and beside others: who loses more may still do more."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in records(compared.leads(partitioned=False)):
        if not math.isnan(row["baseline_rate_ratio"]):
            group = row["lead"], row["unit"], _times(row, "baseline"), _behind(row)
            groups.setdefault(group, []).append(row)
    for (lead, unit, alone, many), rows in list(groups.items())[:SHOWN]:
        beside = [f"{_times(row, 'scene')} beside {_beside(row)}" for row in rows[:SHOWN]]
        yet = [f"{clause} {listed(others)}" for word, clause in YET.items() if (others := _yet(rows, word))]
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        yield (
            f"Alone, {lead} makes {alone} times as many units ({unit}) a second in B as in A; "
            f"{', '.join(beside)}{more} ({many})" + "".join(f"; {clause}" for clause in yet) + "."
        )
    if groups:
        yield NOT_PAIRED


def _beside(row: Row) -> str:
    return str(row["antagonists"]).replace("+", " + ")


def _times(row: Row, name: str) -> str:
    return str(Quantity.of(row, f"{name}_rate_ratio", digits=3))


def _behind(row: Row) -> str:
    """How many launches of A and B are behind ratios of rates, and that they are too few where there is no interval."""
    many = f"in {row['launches_a']} and {counted(int(row['launches_b']), 'launch')}"
    return many + (", too few for an interval" if math.isnan(row["baseline_rate_ratio_low"]) else "")


def _yet(rows: Sequence[Row], verdict: str) -> list[str]:
    """Beside whom B loses more although it is faster alone, or less although it is slower."""
    faster, slower = rows[0]["baseline_rate_ratio_low"] > 1, rows[0]["baseline_rate_ratio_high"] < 1
    return [_beside(row) for row in rows if row["verdict"] == verdict] if (faster, slower)[verdict == LESS] else []


def _partitions(compared: Compared) -> Iterator[str]:
    rows = compared.leads(partitioned=True)
    if len(rows):
        words = Counter(rows["verdict"])
        counts = ", ".join(f"{count} {word}" for word, count in words.most_common())
        yield f"Under partitions both have {counted(len(rows), 'row')} of leads against alone: {counts}."


def _masks(compared: Compared) -> Iterator[str]:
    if compared.masks:
        count = len(compared.masks)
        verb = "gives" if count == 1 else "give"
        more = f" ({count - 1} more on the page)" if count > 1 else ""
        yield f"{counted(count, 'partition')} of the same name {verb} something else in B: {compared.masks[0]}{more}."


def _one_sided(compared: Compared) -> Iterator[str]:
    for where in ("only in A", "only in B"):
        rows = compared.table[compared.table["where"] == where]
        letter = where[-1].lower()
        if len(rows):
            mixes = rows.groupby("mix", sort=False)[f"partition_{letter}"].unique()
            shared = set(compared.both["mix"])
            parts = [
                f"{mix} ({counted(len(names), 'partition')})" if mix in shared else str(mix)
                for mix, names in mixes.items()
            ]
            text = listed(parts) if len(parts) <= SHOWN else f"{', '.join(parts[:SHOWN])} and {len(parts) - SHOWN} more"
            yield f"{where[:1].upper()}{where[1:]}: {text}."
