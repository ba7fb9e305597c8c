"""Several studies against a baseline -> plain sentences; pure, so that what they claim can be tested."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from castmates.analysis.comparison.details import KINDS, POINTS, PROVEN
from castmates.analysis.effects.verdicts import LESS, MORE, NO_DATA, NO_DIFFERENCE, PLATFORMS_DIFFER, TOO_FEW
from castmates.report.comparison.compare import Compared, Several
from castmates.report.comparison.details import Difference
from castmates.report.comparison.throughput import throughput_sentences
from castmates.report.comparison.words import hours
from castmates.report.results import records
from castmates.report.text.operations import operation_words
from castmates.report.text.words import Quantity, Row, as_loss, counted, listed, percent_of, plain
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
        *throughput_sentences(several),
        *hours(several.pairs),
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
    values = [f"{Quantity.of(row, 'slowdown', digits=3)} in {row['letter']}{_ratio(row)}" for row in means]
    yield (
        f"Geometric mean of the slowdowns of the {means[0]['pairs']} mixes that all studies have: {'; '.join(values)}. "
        "Its interval covers these mixes, not other ones."
    )


def _ratio(row: Row) -> str:
    """( 1.046 [1.020, 1.073] times A's), of the others."""
    if math.isnan(row["ratio"]):
        return ""
    return f" ({Quantity.of(row, 'ratio', digits=3)} times A's: {verdict_in(row['verdict'], row['letter'])})"


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


# What lies below the losses of compared studies, in sentences and short tables: proven differences first.

_DETAIL_SHOWN = 6  # rows of a section
_DETAIL_NAMED = 3  # items that a sentence names
TITLES = {  # of a kind: its heading, and what one of its rows is, and several are
    "counters": ("Counters", "change of a counter", "changes of counters"),
    "phases": ("Phases of a step", "loss of a phase", "losses of phases"),
    "operations": ("Operations", "loss of a group of operations", "losses of groups of operations"),
    "quantiles": ("Step and request times", "change of a quantile", "changes of quantiles"),
}


@dataclass(frozen=True)
class Section:
    """What is shown of one kind."""

    name: str
    title: str
    sentences: list[str]
    rows: list[dict[str, Any]]  # the largest proven differences first
    all: int  # rows of the CSV

    @property
    def file(self) -> str:
        """The CSV with all rows."""
        return detail_file(self.name)


def detail_file(kind: str) -> str:
    """The CSV of a kind."""
    return f"comparison_{kind}.csv"


def sections(several: Several, shown: int = _DETAIL_SHOWN) -> list[Section]:
    """One for each kind of which both studies have something in common."""
    return [
        section
        for name, table in several.details.tables.items()
        if (section := _section(name, table, several.margin, shown)) is not None
    ]


def _section(name: str, table: pd.DataFrame, margin: float, shown: int) -> Section | None:
    both = table[table["where"] == "both"]
    if both.empty:
        return None
    proven = both[both["verdict"].isin(PROVEN)]
    # Points and ratios differ in scale: the certainty of a difference orders both.
    order = proven.assign(size=proven["p_value"]).sort_values("size", kind="stable")
    if both["scale"].nunique() == 1:
        points = (both["scale"] == POINTS).all()
        size = proven["difference"].abs() if points else (proven["difference"] - 1).abs()
        order = proven.assign(size=size).sort_values("size", ascending=False, kind="stable")
    rows = [_row(name, row) for row in records(order.head(shown))]
    sentences = [*_summary(name, both, len(proven), margin), *_one_sided(name, table)]
    return Section(name, TITLES[name][0], sentences, rows, len(table))


def _summary(name: str, both: pd.DataFrame, proven: int, margin: float) -> Iterator[str]:
    tests = int(both["p_value"].notna().sum())
    if (both["verdict"] == PLATFORMS_DIFFER).all():
        yield f"{_many(name, len(both))} in both, not compared because their platforms differ."
    elif not tests:
        yield f"{_many(name, len(both))} in both, with too few launches to compare them."
    else:
        same = int((both["verdict"] == NO_DIFFERENCE).sum())
        within = f"; {same} {'differs' if same == 1 else 'differ'} by no more than {percent_of(margin)}" if same else ""
        found = f"{proven} {'is' if proven == 1 else 'are'}" if proven else "none is"
        both_of = "in both" if both["letter"].nunique() == 1 else "that A and another study have"
        yield f"Of {_many(name, tests)} {both_of}, {found} proven to differ (Holm){within}."


def _many(name: str, count: int) -> str:
    _, one, many = TITLES[name]
    return f"{count} {one if count == 1 else many}"


def _one_sided(name: str, table: pd.DataFrame) -> Iterator[str]:
    """Groups of operations that one study alone has; of other kinds the CSV has them."""
    if name != "operations":
        return
    for (letter, where), rows in table[table["where"] != "both"].groupby(["letter", "where"]):
        who = "A" if str(where).endswith("A") else str(letter)
        items = [operation_words(item) for item in dict.fromkeys(rows["item"])]
        more = [f"{len(items) - _DETAIL_NAMED} more"] if len(items) > _DETAIL_NAMED else []
        yield f"Only in {who}{f' (against {letter})' if who == 'A' else ''}: {listed([*items[:_DETAIL_NAMED], *more])}."


def _row(name: str, row: Row) -> dict[str, Any]:
    return {
        **row,
        "who": _who(row),
        "what": operation_words(row["item"]) if name == "operations" else row["item"],
        "said_a": _said(row, "change_a", row["scale"]),
        "said_b": _said(row, "change_b", row["scale"]),
        "said": _said(row, "difference", row["scale"]),
        "verdict": verdict_in(row["verdict"], row["letter"]),
    }


def _who(row: Row) -> str:
    """dlrm beside stream."""
    lead, _, others = str(row["mix"]).partition("+")
    partition = "" if row["partition_a"] == UNMANAGED else f" @{row['partition_a']}"
    beside = f"{lead} beside {plain(others).replace('+', ' + ')}"
    member = plain(row["member"])
    return f"{beside}{partition}" if member in ("", lead) else f"{member} in {beside}{partition}"


def _said(row: Row, name: str, scale: str) -> str:
    digits, unit = (1, " points") if scale == POINTS else (3, "")
    return f"{Quantity.of(row, name, digits=digits)}{unit}"


# Several studies in one table, for terminal and page: a row per pair, a column per study, the baseline first.

ABSENT = "–"


@dataclass(frozen=True)
class Cell:
    """What one study shows of one pair."""

    loss: str  # 12.6 [2.0, 22.2]
    ratio: str = ""  # of its slowdown to the baseline's: 1.046 [1.020, 1.073]; "" of the baseline
    verdict: str = ""
    value: float = math.nan  # the loss in per cent, to sort by
    launches: int = 0


@dataclass(frozen=True)
class Line:
    """A pair, and what each study shows of it."""

    pair: str
    partition: str  # as the baseline calls it; "" without one
    cells: tuple[Cell, ...]


def lines(several: Several) -> list[Line]:
    """The leads against alone, of every pair that the baseline and another study have."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for pair in several.pairs:
        rows = pair.both
        for row in records(rows[(rows["role"] == "lead") & (rows["baseline"] == "alone")]):
            found.setdefault((row["mix"], row["partition_a"]), {})[pair.b.letter] = row
    letters = [study.letter for study in several.studies[1:]]
    return [_line(by_letter, letters) for by_letter in found.values()]


def mean_line(several: Several) -> Line | None:
    """The geometric mean over the pairs that all studies have, where these are several."""
    means = records(several.means)
    if not means or means[0]["pairs"] < 2:
        return None
    return Line(f"geometric mean of {means[0]['pairs']} mixes", "", tuple(_mean(row) for row in means))


def _line(by_letter: dict[str, Row], letters: list[str]) -> Line:
    first = next(iter(by_letter.values()))
    partition = "" if first["partition_a"] == UNMANAGED else str(first["partition_a"])
    others = [_other(by_letter[letter], letter) if letter in by_letter else Cell(ABSENT) for letter in letters]
    return Line(pair_name(first), partition, (_baseline(first), *others))


def _baseline(row: Row) -> Cell:
    return Cell(
        str(Quantity.loss(row, "slowdown_a")), value=as_loss(row["slowdown_a"]), launches=int(row["launches_a"])
    )


def _other(row: Row, letter: str) -> Cell:
    ratio = "" if math.isnan(row["ratio"]) else str(Quantity.of(row, "ratio", digits=3))
    value, launches = as_loss(row["slowdown_b"]), int(row["launches_b"])
    return Cell(str(Quantity.loss(row, "slowdown_b")), ratio, verdict_in(row["verdict"], letter), value, launches)


def _mean(row: Row) -> Cell:
    loss, ratio = Quantity.loss(row), "" if math.isnan(row["ratio"]) else str(Quantity.of(row, "ratio", digits=3))
    verdict = "" if row["verdict"] == "baseline" else verdict_in(row["verdict"], row["letter"])
    return Cell(str(loss), ratio, verdict, loss.value, int(row["launches"]))


# A comparison as plain data, for scripts: what JSON can hold.


def as_data(several: Several) -> dict[str, Any]:
    """Studies, sentences, the rows of the tables, and what differs; a number that there is not is None."""
    letters = [study.letter for study in several.studies]
    return {
        "studies": [asdict(study) for study in several.studies],
        "origin": several.origin,
        "margin": several.margin,
        "sentences": sentences(several),
        "rows": _rows(several.table),
        "means": _rows(several.means),
        "throughput": _rows(several.throughput),
        "history": _rows(several.history),
        **{kind.name: _rows(several.details.table(kind.name)) for kind in KINDS},
        "notes": list(several.details.notes),
        "differences": _by_study(several.differences, letters),
        "work": _by_study(several.work, letters),
    }


def _by_study(differences: Sequence[Difference], letters: Sequence[str]) -> dict[str, dict[str, str]]:
    """By what differs, its text in each study."""
    return {name: dict(zip(letters, texts, strict=True)) for name, *texts in differences}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    known = table.astype(object).where(table.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in known.to_dict("records")]
