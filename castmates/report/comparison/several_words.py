"""Several studies against a baseline -> plain sentences; pure, so that what they claim can be tested."""

import math
from collections.abc import Iterator, Sequence

from castmates.analysis.effects.verdicts import LESS, MORE, NO_DATA, NO_DIFFERENCE, TOO_FEW
from castmates.report.comparison.compared import Compared, Several
from castmates.report.comparison.differences import Difference
from castmates.report.results import records
from castmates.report.text.words import Row, counted, interval, listed, number, percent_of
from castmates.study.spec import UNMANAGED

SHOWN = 8  # of a kind; the table has them all
PIECES = {  # verdict -> what the pairs with it do, for one pair and for several; {} is the margin
    MORE: ("loses more than in A", "lose more than in A"),
    LESS: ("loses less than in A", "lose less than in A"),
    NO_DIFFERENCE: ("differs by no more than {}", "differ by no more than {}"),
    TOO_FEW: ("has too few launches", "have too few launches"),
    NO_DATA: ("has no data", "have no data"),
}
OTHERWISE = ("is unclear", "are unclear")
NAMED = (MORE, LESS)  # verdicts whose pairs are listed


def sentences(several: Several) -> list[str]:
    """What stands before the table, the most important first."""
    return [
        *(_against(pair) for pair in several.pairs),
        *mean_sentences(several),
        *_without_baseline(several),
        *_adjusted(several),
        *_differing("Not the same programs, inputs or CPUs", several.work),
        *dict.fromkeys(words for pair in several.pairs for words in (*pair.equal, *pair.traffic)),
        *_differing("Machines, versions or designs differ", several.differences),
    ]


def mean_sentences(several: Several) -> Iterator[str]:
    """The geometric mean of each study, and of how many pairs; nothing of a single pair."""
    means = [row for row in records(several.means) if not math.isnan(row["slowdown"])]
    if not means or means[0]["pairs"] < 2:
        return
    values = [f"{_slowdown(row)} in {row['letter']}{_ratio(row)}" for row in means]
    yield (
        f"Geometric mean of the slowdowns of the {means[0]['pairs']} mixes that all studies have: {'; '.join(values)}. "
        "Its interval covers new launches of these mixes, not other mixes."
    )


def _slowdown(row: Row) -> str:
    ends = "" if math.isnan(row["slowdown_low"]) else " " + interval(row["slowdown_low"], row["slowdown_high"], 3)
    return f"{number(row['slowdown'], 3)}{ends}"


def _ratio(row: Row) -> str:
    """( 1.046 [1.020, 1.073] times A's), of the others."""
    if math.isnan(row["ratio"]):
        return ""
    ends = "" if math.isnan(row["ratio_low"]) else " " + interval(row["ratio_low"], row["ratio_high"], 3)
    return f" ({number(row['ratio'], 3)}{ends} times A's: {verdict_in(row['verdict'], row['letter'])})"


def verdict_in(verdict: str, letter: str) -> str:
    """The verdict of a row whose B is another letter: loses more in C."""
    return verdict.replace("in B", f"in {letter}")


def _against(pair: Compared) -> str:
    """B, against A: of 6 pairs 2 lose more than in A (…), 3 are unclear."""
    rows = records(pair.leads(partitioned=False))
    if pair.mixed:
        return (
            f"{pair.b.letter} is {' and '.join(pair.b.platforms)} and A is {' and '.join(pair.a.platforms)}: their "
            "losses stand side by side, and no interval contains both."
        )
    if not rows:
        return f"{pair.b.letter} and A have no lead beside the same antagonists against alone."
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row["verdict"], []).append(pair_name(row))
    parts = []
    for verdict in sorted(groups, key=lambda word: list(PIECES).index(word) if word in PIECES else len(PIECES)):
        names = groups[verdict]
        words = PIECES.get(verdict, OTHERWISE)[len(names) > 1].format(percent_of(pair.margin))
        which = f" ({_some(names)})" if verdict in NAMED else ""
        parts.append(f"{len(names)} {words}{which}")
    return f"{pair.b.letter} against A: of {counted(len(rows), 'mix')} {listed(parts)}.{_under_partitions(pair)}"


def _under_partitions(pair: Compared) -> str:
    rows = pair.leads(partitioned=True)
    if rows.empty:
        return ""
    counts = rows["verdict"].value_counts()
    words = [f"{count} {verdict_in(str(verdict), pair.b.letter)}" for verdict, count in counts.items()]
    return f" Under partitions, {counted(len(rows), 'comparison')}: {listed(words)}."


def pair_name(row: Row) -> str:
    """A lead and its antagonists: dlrm beside stream + chase."""
    beside = str(row["antagonists"]).replace("+", " + ")
    return f"{row['lead']} beside {beside}" if beside else f"{row['lead']} alone"


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _without_baseline(several: Several) -> Iterator[str]:
    """The pairs that have no line because A lacks them, though several of the others have them."""
    letters: dict[str, list[str]] = {}
    for pair in several.pairs:
        rows = pair.table[pair.table["where"] == "only in B"]
        for row in records(rows[(rows["role"] == "lead") & (rows["baseline"] == "alone")]):
            partition = "" if row["partition_b"] == UNMANAGED else f" @{row['partition_b']}"
            letters.setdefault(f"{pair_name(row)}{partition}", []).append(pair.b.letter)
    shared = {name: found for name, found in letters.items() if len(found) > 1}
    if shared:
        who = listed(sorted({letter for found in shared.values() for letter in found}))
        yield (
            f"{counted(len(shared), 'mix')} that A lacks and several of {who} have: {_some(list(shared))}; "
            f"`castmates compare` with another --baseline compares {'it' if len(shared) == 1 else 'them'}."
        )


def _adjusted(several: Several) -> Iterator[str]:
    tests = sum(int(pair.leads(partitioned=False)["p_value"].notna().sum()) for pair in several.pairs)
    if tests > 1:
        yield (
            f"These are {tests} comparisons, pairs times studies; the verdicts of all of them together hold at 5 % "
            "(Holm). Each interval by itself covers 95 %."
        )


def _differing(what: str, rows: Sequence[Difference]) -> Iterator[str]:
    if rows:
        yield f"{what}: {_some([row[0] for row in rows])}. Any of these may be behind a difference."
