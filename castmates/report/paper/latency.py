"""The tables of a paper on step times: quantiles with intervals, without a partition, and of each lead under them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from castmates.report.paper import methods
from castmates.report.results import Results, records
from castmates.report.text import latency
from castmates.report.text.stamps import first_words, stamped
from castmates.report.text.words import Quantity, listed, plain
from castmates.study.mitigations import BETWEEN as PLACED
from castmates.study.spec import UNMANAGED

Row = Mapping[str, Any]


HEADS = ["Quantile", "ms", "95 % interval", "n", "Ratio", "95 % interval", "n"]
ALONE = {
    "alone": "nothing",
    "antagonist-alone": "nothing",
    "placebo": "placebos",
}  # what a scene without a mix has beside a member


def tables(results: Results) -> dict[str, str]:
    """Name of the file -> LaTeX."""
    rows = _rows(results)
    managed = [row for row in rows if row["partition"] != UNMANAGED and row["role"] == "lead"]
    bare = [row for row in rows if row["partition"] == UNMANAGED]
    texts = {"latency.tex": _unmanaged(results, bare)} if bare else {}
    for mix in dict.fromkeys(row["mix"] for row in managed if row["mix"]):
        own = [row for row in managed if row["mix"] == mix]
        texts[file_name("latency", mix)] = _under_partitions(results, mix, own)
    return texts


def _rows(results: Results) -> list[Row]:
    """The table's rows with who else is in their mix."""
    mixes = {row["mix"]: (row["lead"], row["antagonists"]) for row in records(results.effects)}
    return [
        row | dict(zip(("lead", "antagonists"), mixes.get(row["mix"], ("", "")), strict=True))
        for row in records(latency.of_steps(results))
    ]


def _unmanaged(results: Results, rows: list[Row]) -> str:
    caption = f"Step times without a partition. {_method(results, rows)}"
    cells = list(_without_repeats(([plain(row["member"]), _beside(row)], _numbers(row)) for row in rows))
    return methods.tables("tab:castmates-latency", caption, ["Member", "Beside", *HEADS], "lllrrrrrr", cells)


def _under_partitions(results: Results, mix: str, rows: list[Row]) -> str:
    caption = f"{plain(mix)}: step times of the lead under partitions. {_method(results, rows)}"
    cells = list(_without_repeats(([row["partition"]], _numbers(row)) for row in rows))
    label = f"tab:castmates-latency-{mix.replace('+', '-')}"
    return methods.tables(label, caption, ["Partition", *HEADS], "llrrrrrr", cells)


def _beside(row: Row) -> str:
    return ALONE[row["kind"]] if row["kind"] in ALONE else beside(row)


def _without_repeats(rows: Iterable[tuple[list[str], list[str]]]) -> Iterator[list[str]]:
    """The rows; what they are of stands on the first of those that are of the same."""
    before: list[str] = []
    for names, numbers in rows:
        yield [*([""] * len(names) if names == before else names), *numbers]
        before = names


def _numbers(row: Row) -> list[str]:
    if row["refused"]:
        return [row["quantile"], "missing", "–", str(row["launches"]), "–", "–", "–"]
    ms, ratio = Quantity.of(row, "ms", digits=latency.digits(row["ms"])), Quantity.of(row, "ratio", digits=3)
    values = [*ms.cells(flag(row)), str(row["launches"])]
    if not row["launches_paired"]:
        return [row["quantile"], *values, "–", "–", "–"]
    return [row["quantile"], *values, *ratio.cells(flag(row)), str(row["launches_paired"])]


def _method(results: Results, rows: list[Row]) -> str:
    refused = (
        f" A quantile is left out below {latency.needed()} steps in a launch (p50, p95, p99), and where more than a "
        "tenth of the launches have fewer."
        if any(row["refused"] for row in rows)
        else ""
    )
    return (
        "Each launch has separate quantiles; the ratio is to the member's steps without any other, in the same "
        f"launch and without a partition. {intervals()} with enough steps{flagged(rows)}.{refused} {source(results)}"
    )


# What the tables of a paper have in common: who stands beside whom, ends of intervals, marks, and where it is from.

WITHIN, BIASED = "†", "‡"
FEW = "within these launches only, of which there are fewer than three"


def intervals(level: str = "between launches") -> str:
    """What intervals of a table are, and how many launches."""
    return f"Intervals are 95 % t intervals {level}; n is the number of launches"


def source(results: Results) -> str:
    """The end of every caption: platform and stamps."""
    platforms = listed(results.platforms) if results.platforms else "no numbers"
    return f"{first_words(results)}Platform: {platforms}. {stamped(results)}"


def beside(row: Row) -> str:
    """Of a lead its antagonists; of an antagonist all others of its mix."""
    if row["role"] == "lead":
        return plain(str(row["antagonists"])).replace("+", ", ")
    others = [row["lead"], *str(row["antagonists"]).partition(PLACED)[0].split("+")]
    others.remove(plain(row["member"]))
    return ", ".join(others)


def flag(row: Row) -> str:
    """The mark of a number that may be biased."""
    return BIASED if row["possibly_biased"] else ""


def flagged(rows: Iterable[Row]) -> str:
    """What the mark means, where a row has it."""
    if not any(row["possibly_biased"] for row in rows):
        return ""
    return f"; {BIASED} possibly biased: its windows were rejected more often than its baseline's"


def file_name(kind: str, mix: str) -> str:
    """The file of one mix's table."""
    return f"{kind}-{mix.replace('+', '-')}.tex"
