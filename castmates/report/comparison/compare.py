"""Two studies on disk -> their comparison, for terminal and folder."""

from collections.abc import Sequence
from pathlib import Path

from castmates.analysis.comparison import comparison_partitions as partitions
from castmates.analysis.comparison.comparison import Side, compare
from castmates.analysis.comparison.dependence import shared_blocks
from castmates.errors import CastmatesError
from castmates.files import refuse_foreign, replace, writing
from castmates.report.comparison.compared import Compared, Described
from castmates.report.comparison.differences import differences, other_work
from castmates.results.find import Measured, read_measured
from castmates.study.model import Study

TABLE = "comparison.csv"


def compare_studies(a: Path, b: Path, margin: float | None) -> Compared:
    """Read both, refuse what cannot be compared, and compare."""
    one, other = read_measured(a), read_measured(b)
    for side in (one, other):
        _refuse_failures_alone(side)
    _refuse_shared_blocks(one, other)
    chosen = margin if margin is not None else _margin(one, other)
    table = compare(Side(one.plan, one.windows), Side(other.plan, other.windows), chosen)
    compared = Compared(
        a=_described("A", one),
        b=_described("B", other),
        table=table,
        margin=chosen,
        differences=differences(one.machine, other.machine, one.records, other.records),
        work=other_work(one.plan, other.plan),
        masks=_other_masks(one, other),
    )
    if compared.both.empty:
        raise CastmatesError(
            f"{one.folder} and {other.folder} have no mix, member and baseline in common (A has {_mixes(one)}; B has "
            f"{_mixes(other)}); compare studies whose leads and antagonists have the same names."
        )
    return compared


def may_write(folder: Path) -> None:
    """Refuse a folder that holds what no comparison wrote, such as a study's own report."""
    refuse_foreign(folder, TABLE, lambda text: "slowdown_a" in text, "castmates compare")


def write(compared: Compared, folder: Path) -> list[Path]:
    """Write table, figure and page."""
    from castmates.report.comparison import figure as comparison_figure
    from castmates.report.comparison import page as comparison_page
    from castmates.report.figures import style

    table = folder / TABLE
    with writing(table):
        replace(table, lambda file: compared.table.to_csv(file, index=False))
    figure, source = comparison_figure.draw(compared)
    style.write(figure, source, folder / "comparison-figure")
    page = folder / "index.html"
    comparison_page.write_page(compared, folder / "comparison-figure.svg", page)
    return [page, table, folder / "comparison-figure.svg"]


def _refuse_failures_alone(one: Measured) -> None:
    if all(record.get("status") == "failed" for record in one.records):
        raise CastmatesError(
            f"{one.folder}: each of its {len(one.records)} blocks failed{_failures(one)}; put that right, and run "
            "`castmates retry` and the sweep again."
        )


def _failures(one: Measured) -> str:
    """(it died of SIGSEGV): the first reason that was recorded."""
    reason = next((str(record["reason"]) for record in one.records if record.get("reason")), "")
    return f" ({reason})" if reason else ""


def _refuse_shared_blocks(a: Measured, b: Measured) -> None:
    shared = shared_blocks(a.records, b.records)
    if shared or a.folder.path.resolve() == b.folder.path.resolve():
        which = f"{len(shared)} of A's {len(a.records)} blocks are B's too" + (
            f", such as {shared[0]}" if shared else ""
        )
        raise CastmatesError(
            f"{a.folder} and {b.folder} are not independent: {which}. Compare studies that were measured apart "
            "(modelled ones need seeds of their own)."
        )


def _margin(a: Measured, b: Measured) -> float:
    """The stricter of both studies' margins; the usual one where no study file is known."""
    known = [side.study.margin for side in (a, b) if side.study]
    return min(known) if known else float(Study.model_fields["margin"].default)


def _described(letter: str, one: Measured) -> Described:
    measured = [record for record in one.records if record.get("status") == "measured"]
    platforms = {str(record["platform"]) for record in measured if record.get("platform")}
    hosts = {str(record["host"]) for record in measured if record.get("host")}
    return Described(
        letter=letter,
        name=one.plan.study,
        folder=str(one.folder),
        blocks=len(measured),
        platforms=tuple(sorted(platforms)),
        hosts=tuple(sorted(hosts)),
        failed=tuple(str(record.get("reason") or "") for record in one.records if record.get("status") == "failed"),
    )


def _other_masks(a: Measured, b: Measured) -> Sequence[str]:
    ours, theirs = partitions.gifts(a.plan), partitions.gifts(b.plan)
    return [
        f"{match.a} of {match.mix} gives {partitions.gift_words(ours[match.mix, match.a])} in A, "
        f"{partitions.gift_words(theirs[match.mix, match.b])} in B"
        for match in partitions.matches(ours, theirs)
        if match.masks == partitions.DIFFER
    ]


def _mixes(one: Measured) -> str:
    names = list(dict.fromkeys(mix.name for mix in one.plan.mixes))
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "none"
