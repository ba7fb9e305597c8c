"""Studies on disk -> their comparison with the first of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from string import ascii_uppercase

from castmates.analysis.comparison.comparison import Side, against, geometric_means
from castmates.analysis.comparison.launches import DIFFER, gift_words, gifts, matches, shared_launches
from castmates.analysis.partitions.held import HeldPartitions, as_held, equal, held_by
from castmates.errors import CastmatesError
from castmates.report.comparison.compared import Compared, Described, Several
from castmates.report.comparison.details import Details, SetUp, compare_details, differences, other_traffic, other_work
from castmates.report.figures.marks import antagonists_of
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import MachineFacts
from castmates.report.text.design import lengths
from castmates.report.text.words import listed
from castmates.results.find import Measured, read_measured
from castmates.study.model import Study
from castmates.study.spec import Plan

LETTERS = ascii_uppercase


def compare_studies(named: Sequence[Path], margin: float | None) -> Several:
    """Read all, refuse what cannot be compared, and compare each with the first, the baseline."""
    _refuse_too_many(named)
    measured = list(map(read_measured, named))
    several = compare_measured(measured, margin)
    return replace(several, details=_details(measured, several.margin))


def compare_measured(measured: Sequence[Measured], margin: float | None) -> Several:
    """Compare what was read of studies with the first of them."""
    studies = dict(zip(LETTERS, measured, strict=False))
    for study in studies.values():
        _refuse_failures_alone(study)
    for one, other in combinations(studies, 2):
        _refuse_shared_launches((one, studies[one]), (other, studies[other]))
    chosen = margin if margin is not None else _margin(studies.values())
    held = {letter: held_by(study.records) for letter, study in studies.items()}
    plans = {letter: as_held(study.plan, held[letter]) for letter, study in studies.items()}
    sides = {letter: Side(plans[letter], study.windows) for letter, study in studies.items()}
    tables = against(sides["A"], {letter: side for letter, side in sides.items() if letter != "A"}, chosen)
    described = {letter: _described(letter, study) for letter, study in studies.items()}
    set_ups = {letter: _set_up(study) for letter, study in studies.items()}
    beside = list(dict.fromkeys(name for study in studies.values() for name in antagonists_of(study.plan)))
    pairs = []
    for letter, table in tables.items():
        both = [studies["A"], studies[letter]]
        pair = Compared(
            a=described["A"],
            b=described[letter],
            table=table,
            margin=chosen,
            differences=differences([set_ups["A"], set_ups[letter]]),
            work=other_work([study.plan for study in both]),
            masks=_other_masks(plans["A"], plans[letter], letter),
            equal=[words for name in ("A", letter) for words in _made_equal(studies[name].plan, held[name], name)],
            traffic=list(other_traffic(set_ups["A"], set_ups[letter], letter)),
            antagonists=beside,
        )
        _refuse_nothing_in_common(pair, *both)
        pairs.append(pair)
    return Several(
        pairs=pairs,
        means=geometric_means(sides, chosen),
        differences=differences(list(set_ups.values())),
        work=other_work([study.plan for study in studies.values()]),
        antagonists=beside,
    )


def _details(measured: Sequence[Measured], margin: float) -> Details:
    """What lies below the losses: counters, phases, operations, quantiles."""
    studies = dict(zip(LETTERS, measured, strict=False))
    plans = {letter: as_held(study.plan, held_by(study.records)) for letter, study in studies.items()}
    return compare_details(studies, plans, margin)


def with_baseline(named: Sequence[Path], baseline: str) -> list[Path]:
    """The studies with the one in front that `baseline` names: its path, or the name of its folder or file."""
    wanted = [path for path in named if baseline in (str(path), path.name, path.stem)] or [
        path for path in named if path.resolve() == Path(baseline).resolve()
    ]
    if len(wanted) != 1:
        many = "more than one" if wanted else "none"
        raise CastmatesError(
            f"--baseline is '{baseline}', which is {many} of the studies that are compared: "
            f"{', '.join(map(str, named))}; give one of these."
        )
    return [*wanted, *(path for path in named if path is not wanted[0])]


def _refuse_too_many(named: Sequence[Path]) -> None:
    if not 2 <= len(named) <= len(LETTERS):
        raise CastmatesError(
            f"compare takes 2 to {len(LETTERS)} studies, and {len(named)} {'is' if len(named) == 1 else 'are'} given; "
            "give the baseline first, then the others."
        )


def _refuse_nothing_in_common(pair: Compared, a: Measured, b: Measured) -> None:
    if pair.both.empty:
        raise CastmatesError(
            f"{a.folder} and {b.folder} have no mix, member and baseline in common (A has {_mixes(a)}; "
            f"{pair.b.letter} has {_mixes(b)}); compare studies whose leads and antagonists have the same names."
        )


def _set_up(study: Measured) -> SetUp:
    return SetUp(MachineFacts.model_validate(study.machine), _records(study))


def _records(study: Measured) -> list[LaunchRecord]:
    return [LaunchRecord(record) for record in study.records]


def _refuse_failures_alone(study: Measured) -> None:
    if all(record.failed for record in _records(study)):
        raise CastmatesError(
            f"{study.folder}: each of its {len(study.records)} launches failed{_failures(study)}; put that right, and "
            "run `castmates sweep --retry`."
        )


def _failures(study: Measured) -> str:
    """(it died of SIGSEGV): the first reason that was recorded."""
    reason = next((record.reason for record in _records(study) if record.reason), "")
    return f" ({reason})" if reason else ""


def _refuse_shared_launches(one: tuple[str, Measured], other: tuple[str, Measured]) -> None:
    (a, ours), (b, theirs) = one, other
    shared = shared_launches(ours.records, theirs.records)
    if shared or ours.folder.path.resolve() == theirs.folder.path.resolve():
        which = f"{len(shared)} of {a}'s {len(ours.records)} launches are {b}'s too" + (
            f", for example {shared[0]}" if shared else ""
        )
        raise CastmatesError(
            f"{ours.folder} and {theirs.folder} are not independent: {which}. Compare studies that were measured apart "
            "(modelled ones need different seeds)."
        )


def _margin(studies: Iterable[Measured]) -> float:
    """The strictest of all studies' margins; the usual one where no study file is known."""
    known = [measured.study.margin for measured in studies if measured.study]
    return min(known) if known else float(Study.model_fields["margin"].default)


def _described(letter: str, study: Measured) -> Described:
    measured = [record for record in _records(study) if record.measured]
    platforms = {record.platform for record in measured} - {""}
    hosts = {record.host for record in measured} - {""}
    return Described(
        letter=letter,
        name=study.plan.study,
        folder=str(study.folder),
        launches=len(measured),
        platforms=tuple(sorted(platforms)),
        hosts=tuple(sorted(hosts)),
        failed=tuple(record.reason for record in _records(study) if record.failed),
        date=_date(measured),
        slices=lengths(measured),
    )


def _date(records: Sequence[LaunchRecord]) -> str:
    """When the middle one of these launches began, in UTC, to the second; "" where none has a time."""
    times = sorted(filter(None, (_time(record.started) for record in records)))
    return times[len(times) // 2].isoformat(timespec="seconds") if times else ""


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)


def _made_equal(plan: Plan, held: HeldPartitions, letter: str) -> Iterator[str]:
    for names in equal(plan, held):
        yield f"{listed(names)} are one partition in {letter}: the processor held the same under each."


def _other_masks(a: Plan, b: Plan, letter: str) -> Sequence[str]:
    ours, theirs = gifts(a), gifts(b)
    return [
        f"{match.a} of {match.mix} gives {gift_words(ours[match.mix, match.a])} in A, "
        f"{gift_words(theirs[match.mix, match.b])} in {letter}"
        for match in matches(ours, theirs)
        if match.masks == DIFFER
    ]


def _mixes(study: Measured) -> str:
    names = list(dict.fromkeys(mix.name for mix in study.plan.mixes))
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "none"
