"""Two studies on disk -> their comparison."""

from collections.abc import Sequence
from pathlib import Path

from castmates.analysis.comparison import comparison_partitions as partitions
from castmates.analysis.comparison.comparison import Side, compare
from castmates.analysis.comparison.dependence import shared_blocks
from castmates.errors import CastmatesError
from castmates.report.comparison.compared import Compared, Described
from castmates.report.comparison.differences import SetUp, differences, other_work
from castmates.report.facts import BlockRecord, MachineFacts
from castmates.results.find import Measured, read_measured
from castmates.study.model import Study


def compare_studies(a: Path, b: Path, margin: float | None) -> Compared:
    """Read both, refuse what cannot be compared, and compare."""
    in_a, in_b = read_measured(a), read_measured(b)
    for side in (in_a, in_b):
        _refuse_failures_alone(side)
    _refuse_shared_blocks(in_a, in_b)
    chosen = margin if margin is not None else _margin(in_a, in_b)
    table = compare(Side(in_a.plan, in_a.windows), Side(in_b.plan, in_b.windows), chosen)
    compared = Compared(
        a=_described("A", in_a),
        b=_described("B", in_b),
        table=table,
        margin=chosen,
        differences=differences(_set_up(in_a), _set_up(in_b)),
        work=other_work(in_a.plan, in_b.plan),
        masks=_other_masks(in_a, in_b),
    )
    if compared.both.empty:
        raise CastmatesError(
            f"{in_a.folder} and {in_b.folder} have no mix, member and baseline in common (A has {_mixes(in_a)}; B has "
            f"{_mixes(in_b)}); compare studies whose leads and antagonists have the same names."
        )
    return compared


def _set_up(study: Measured) -> SetUp:
    return SetUp(MachineFacts.model_validate(study.machine), _records(study))


def _records(study: Measured) -> list[BlockRecord]:
    return [BlockRecord(record) for record in study.records]


def _refuse_failures_alone(study: Measured) -> None:
    if all(record.failed for record in _records(study)):
        raise CastmatesError(
            f"{study.folder}: each of its {len(study.records)} blocks failed{_failures(study)}; put that right, and "
            "run `castmates retry` and the sweep again."
        )


def _failures(study: Measured) -> str:
    """(it died of SIGSEGV): the first reason that was recorded."""
    reason = next((record.reason for record in _records(study) if record.reason), "")
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


def _described(letter: str, study: Measured) -> Described:
    measured = [record for record in _records(study) if record.measured]
    platforms = {record.platform for record in measured} - {""}
    hosts = {record.host for record in measured} - {""}
    return Described(
        letter=letter,
        name=study.plan.study,
        folder=str(study.folder),
        blocks=len(measured),
        platforms=tuple(sorted(platforms)),
        hosts=tuple(sorted(hosts)),
        failed=tuple(record.reason for record in _records(study) if record.failed),
    )


def _other_masks(a: Measured, b: Measured) -> Sequence[str]:
    ours, theirs = partitions.gifts(a.plan), partitions.gifts(b.plan)
    return [
        f"{match.a} of {match.mix} gives {partitions.gift_words(ours[match.mix, match.a])} in A, "
        f"{partitions.gift_words(theirs[match.mix, match.b])} in B"
        for match in partitions.matches(ours, theirs)
        if match.masks == partitions.DIFFER
    ]


def _mixes(study: Measured) -> str:
    names = list(dict.fromkeys(mix.name for mix in study.plan.mixes))
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "none"
