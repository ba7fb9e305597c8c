"""A placement -> plain sentences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from castmates.analysis.effects.stamps import origin_word
from castmates.analysis.grouping import advice as words
from castmates.analysis.grouping.advice import RANKS, Advice, FreshLosses, beside_one, groupings_table, ways_table
from castmates.analysis.grouping.problem import Group
from castmates.report.results import records
from castmates.report.text.words import Quantity, counted, listed, number

# Everything that is shown of a placement, from which sentences, figure and page are made.


@dataclass(frozen=True)
class Shown:
    """An advice with what fresh launches found of it."""

    advice: Advice
    fresh: Mapping[Group, FreshLosses]
    refused: tuple[str, ...] = ()  # why fresh launches do not count
    title: str = ""  # of the study
    command: str = ""  # that confirms it

    @cached_property
    def groupings(self) -> pd.DataFrame:
        """A row per job of the best groupings."""
        return groupings_table(self.advice, self.fresh)

    @cached_property
    def ways(self) -> pd.DataFrame:
        """A row per way to place the jobs, and kind of job."""
        return ways_table(self.advice)

    @property
    def origin(self) -> str:
        """What comes first where losses were not measured on a machine; "" otherwise."""
        return origin_word([self.advice.place.platform])

    @property
    def is_predicted(self) -> bool:
        """Whether some loss of the best groupings is predicted."""
        return bool((self.groupings["source"] == "predicted").any())


LEAST_GAIN = 0.05  # per cent, which is shown as 0.1
NAMED = 6  # pairs or jobs in one sentence
IN_WORDS = {"random": "at random", "spreading": "by spreading (each job where most cores are free)"}


def sentences(shown: Shown) -> list[str]:
    """What came out, the most important first."""
    if not shown.advice.found.best:
        return [_nothing(shown)]
    return [
        _verdict(shown),
        *_in_the_way(shown),
        *_gains(shown),
        *_freshly(shown),
        *_predicted(shown),
        *_unknown(shown),
        _how(shown),
    ]


def task(shown: Shown) -> str:
    """What was to be placed where."""
    problem = shown.advice.problem
    cores = sorted(set(problem.domains))
    size = str(cores[0]) if len(cores) == 1 else f"{cores[0]} to {cores[-1]}"
    jobs = counted(len(problem.everybody), "job")
    return f"{jobs} on {counted(len(problem.domains), 'last-level cache')} with {size} cores each"


def _nothing(shown: Shown) -> str:
    unknown = list(shown.advice.unknown)
    if not unknown:
        return "The jobs cannot be divided among these caches: their numbers of cores do not fit into them."
    return f"No grouping of these jobs can be judged. {_lacking(unknown)} Measure these mixes: add them to 'mixes'."


def _verdict(shown: Shown) -> str:
    rows = shown.groupings[shown.groupings["rank"] == 1]
    limited, kept = rows[rows["keeps"] != ""], rows[rows["keeps"] == words.KEPT]
    best = shown.advice.found.best[0]
    total = f"the jobs lose {number(best.mean_loss)} % of their rates on average, and get {_stp(best.stp, rows)}"
    if limited.empty:
        return f"No job has a limit. In the best grouping {total}."
    if len(kept) == len(limited):
        return f"The best grouping keeps {_all(len(limited))}, as far as is known: {total}."
    return (
        f"No grouping is shown to keep {_all(len(limited))}. The nearest keeps {len(kept) or 'none'}; upper ends "
        f"of losses are above limits by {number(best.cost[0])} points in all. In it {total}."
    )


def _all(limits: int) -> str:
    return "the one limit" if limits == 1 else f"all {limits} limits"


def _stp(stp: float, rows: pd.DataFrame) -> str:
    return f"as much done as {number(stp, 2)} of the {len(rows)} would alone"


def _in_the_way(shown: Shown) -> Iterator[str]:
    """Each kind of job that is not shown to keep its limit in the best grouping, and beside whom it would."""
    rows = shown.groupings[(shown.groupings["rank"] == 1) & ~shown.groupings["keeps"].isin(["", words.KEPT])]
    for row in records(rows.drop_duplicates(["job", "beside"])):
        loss = Quantity.of(row, "loss_pct", "%").whole
        kept, others = beside_one(shown.advice, row["job"])
        alone = f"Beside one other job alone, it is shown to keep it beside {listed(kept) or 'none'}"
        alone += f", and not beside {listed(others)}." if others else "."
        verb = "is expected to lose" if row["source"] == "predicted" else "loses"
        yield (
            f"In the way: {row['job']} beside {row['beside'].replace('+', ' + ')} {verb} {loss}, and may lose "
            f"{number(row['limit_pct'], 0 if row['limit_pct'] % 1 == 0 else 1)} %. {alone}"
        )


def _gains(shown: Shown) -> Iterator[str]:
    for row in records(shown.ways[shown.ways["job"] == ""]):
        if row["way"] not in IN_WORDS:
            continue
        if not row["groupings"]:
            yield f"What jobs lose that are placed {IN_WORDS[row['way']]} is not known."
            continue
        spread = (
            f", {number(row['loss_p5'])} to {number(row['loss_p95'])} % in nine of ten" if row["groupings"] > 1 else ""
        )
        gain = row["gain_pct"]
        more = f"{number(abs(gain))} % {'more' if gain > 0 else 'less'} done than"
        done = more if abs(gain) >= LEAST_GAIN else "as much done as"
        limits = f", {number(row['exceeded'])} of them more than their limit" if _has_limits(shown) else ""
        unknown = f" {row['unknown']} more could not be judged." if row["unknown"] else ""
        yield (
            f"The best grouping gets {done} jobs that are placed {IN_WORDS[row['way']]}: these lose "
            f"{number(row['loss_pct'])} % on average over {row['groupings']} drawn groupings{spread}{limits}.{unknown}"
        )


def _has_limits(shown: Shown) -> bool:
    return any(job.limit is not None for job in shown.advice.problem.jobs)


def _freshly(shown: Shown) -> Iterator[str]:
    """What fresh launches found of each of the best groupings."""
    for rank in sorted(set(shown.groupings["rank"])):
        rows = shown.groupings[(shown.groupings["rank"] == rank) & (shown.groupings["source"] != words.ALONE)]
        found = rows[rows["fresh_pct"].notna()]
        if found.empty or len(found) < len(rows):
            continue
        everybody = len(shown.groupings[shown.groupings["rank"] == rank])
        expected, fresh = (float(found[f"{name}_pct"].sum()) / everybody for name in ("loss", "fresh"))
        agreeing = int((found["agrees"] == words.AGREES).sum())
        limits = found[found["confirmation"] != ""]["confirmation"].value_counts()
        kept = (
            f" Of its limits, {listed([f'{many} {_is(many)} {word}' for word, many in limits.items()])}."
            if len(limits)
            else ""
        )
        yield (
            f"Fresh launches of the {RANKS[rank - 1]} grouping: the mean loss is {number(fresh)} %, and "
            f"{number(expected)} % was expected; {agreeing} of {len(found)} losses agree within both intervals.{kept}"
            f"{_fresh_gain(shown, everybody * (1 - fresh / 100)) if rank == 1 else ''}"
        )
    yield from (f"Fresh launches that do not count: {why}." for why in shown.refused)
    if not shown.fresh:
        yield (
            "The best groupings look best partly by luck, and how much of it is luck only fresh launches show: "
            f"`{shown.command}` measures the best {_many(shown)}."
        )


def _fresh_gain(shown: Shown, stp: float) -> str:
    """What the best grouping gains by its fresh losses."""
    usual = {row["way"]: row["stp"] for row in records(shown.ways[shown.ways["job"] == ""])}
    gains = [
        f"{number(100 * (stp / usual[way] - 1))} % {words_of_it}"
        for way, words_of_it in (("random", "against random placement"), ("spreading", "against spreading"))
        if usual.get(way, float("nan")) == usual.get(way)
    ]
    if not gains:
        return ""
    return f" By these losses its gain in what is done is {listed(gains)}, whose losses are those known before."


def _is(many: int) -> str:
    return "is" if many == 1 else "are"


def _many(shown: Shown) -> str:
    found = len(shown.advice.found.best)
    return {1: "one", 2: "two", 3: "three"}[found]


def _predicted(shown: Shown) -> Iterator[str]:
    rows = shown.groupings[shown.groupings["rank"] == 1]
    many = int((rows["source"] == "predicted").sum())
    if many:
        yield (
            f"{many} of the {len(rows)} losses of the best grouping are predicted, not measured (castmates help "
            f"place). "
            "Losses beside several jobs are made of those beside each; intervals may leave out how far that is off."
        )


def _unknown(shown: Shown) -> Iterator[str]:
    if unknown := list(shown.advice.unknown):
        yield f"{_lacking(unknown)} Groups with these jobs together are left out."


def _lacking(unknown: Sequence[tuple[str, str]]) -> str:
    pairs = [f"{job} beside {other}" for job, other in unknown[:NAMED]]
    more = [f"{len(unknown) - NAMED} more mixes"] if len(unknown) > NAMED else []
    return f"It is not known, or not well enough for a limit, what is lost by {listed([*pairs, *more])}."


def _how(shown: Shown) -> str:
    found = shown.advice.found
    groups = f"{counted(found.groups, 'group')} can be formed of the jobs"
    if found.how == "exhaustive":
        every = f"all {found.seen} groupings of these were compared" if found.seen > 1 else "they make one grouping"
        return f"{groups}; {every}."
    proof = "the best grouping is proven to be it" if found.gap < 1e-3 else (
        f"time ran out, and another grouping may have up to {number(found.gap)} points less in the sum of its losses"
    )  # fmt: skip
    return f"{groups}; they were chosen by an integer programme (HiGHS), and {proof}."


def limit_words(row: dict[str, Any]) -> str:
    """The limit of a row, and whether it is kept."""
    return "" if row["keeps"] == "" else f"{row['limit_pct']:g} %: {row['keeps']}"


def loss_words(row: dict[str, Any], name: str = "loss") -> str:
    """12.3 [11.9, 12.8]; a dash where there is none."""
    if row["source"] == words.ALONE:
        return "0 (alone)" if name == "loss" else ""
    loss = Quantity.made(float(row[f"{name}_{end}"]) for end in ("pct", "low", "high"))
    return "" if loss.value != loss.value else str(loss)


def fresh_words(row: dict[str, Any]) -> str:
    """What fresh launches found, and whether it agrees."""
    found = loss_words(row, "fresh")
    return f"{found}: {', '.join(filter(None, (row['agrees'], row['confirmation'])))}" if found else ""


def schemata(shown: Shown, rank: int) -> list[str]:
    """The masks of a grouping, as resctrl's groups take them."""
    rows = shown.groupings[(shown.groupings["rank"] == rank) & (shown.groupings["mask"] != "")]
    return [f"{row['job']}: L3:{row['domain']}={row['mask']}" for row in records(rows)]
