"""Studies on disk -> their comparison with the first of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import combinations
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pandas as pd

from castmates.analysis.comparison.comparison import Side, against, geometric_means, throughput
from castmates.analysis.comparison.launches import DIFFER, gift_words, gifts, matches, shared_launches
from castmates.analysis.core import LAUNCHES, SESSIONS, sessions, times_of
from castmates.analysis.effects.stamps import origin_word
from castmates.analysis.partitions.held import HeldPartitions, as_held, equal, held_by
from castmates.errors import CastmatesError
from castmates.report.comparison.details import (
    NOTHING,
    Details,
    Difference,
    SetUp,
    compare_details,
    differences,
    other_traffic,
    other_work,
)
from castmates.report.figures.antagonists import antagonists_of
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import MachineFacts
from castmates.report.results import records
from castmates.report.text.design import lengths
from castmates.report.text.words import Quantity, Row, as_loss, between, chance, counted, listed
from castmates.results.columns.comparison import COMPARISON_HISTORY, COMPARISONS
from castmates.results.columns.study import frame
from castmates.results.find import Measured, read_measured
from castmates.study.model import Study
from castmates.study.spec import UNMANAGED, Plan

# Studies side by side: what terminal, figures and page of a comparison are made of.


@dataclass(frozen=True)
class Described:
    """One of the studies, in words."""

    letter: str  # A, B, …: A is the baseline
    name: str  # of the study
    folder: str
    launches: int
    platforms: tuple[str, ...]
    hosts: tuple[str, ...]
    failed: tuple[str, ...] = ()  # why each launch failed that did
    date: str = ""  # ISO 8601, UTC: the middle of its launches; "" where none was recorded
    sessions: int = 1
    slices: tuple[float, float] | None = None  # the shortest and the longest, in seconds; None where none was recorded

    @property
    def sentence(self) -> str:
        """A is quick (results/quick): 9 launches, measured, on vm."""
        where = f", on {' and '.join(self.hosts)}" if self.hosts and self.platforms == ("measured",) else ""
        count = counted(self.launches, "launch")
        facts = ", ".join([count, *([" and ".join(self.platforms)] if self.platforms else [])])
        return f"{self.letter} is {self.name} ({self.folder}): {facts}{where}{self._failures}."

    @property
    def _failures(self) -> str:
        """; 3 more failed (it ended with status 1). What fails in one study only is a difference too."""
        reasons = "; ".join(dict.fromkeys(filter(None, self.failed)))
        return f"; {len(self.failed)} more failed" + (f" ({reasons})" if reasons else "") if self.failed else ""


@dataclass(frozen=True)
class Compared:
    """Two studies: the table of their comparison and what stands around it."""

    a: Described
    b: Described
    table: pd.DataFrame
    margin: float
    differences: Sequence[Difference]  # machines, versions, designs
    work: Sequence[Difference]  # commands, programs, CPUs
    masks: Sequence[str]  # where partitions of one name are not the same
    equal: Sequence[str] = ()  # which partitions are one, because the processor held the same under each
    traffic: Sequence[str] = ()  # why memory traffic is not the same quantity in both
    antagonists: Sequence[str] = ()  # in the order that gives each its colour

    @cached_property
    def origin(self) -> str:
        """What comes first where not all is measured: modelled (not measured)."""
        return origin_word({*self.a.platforms, *self.b.platforms})

    @property
    def between(self) -> str:
        """What the intervals are between: launches or sessions."""
        return _between([self])

    @property
    def mixed(self) -> bool:
        """Whether the two come from different platforms."""
        return self.a.platforms != self.b.platforms

    @property
    def both(self) -> pd.DataFrame:
        """The rows that both studies have."""
        return self.table[self.table["where"] == "both"]

    def leads(self, partitioned: bool, baseline: str = "alone") -> pd.DataFrame:
        """The leads' rows of both against one baseline, with or without a partition."""
        rows = self.both[(self.both["role"] == "lead") & (self.both["baseline"] == baseline)]
        return rows[(rows["partition_a"] != UNMANAGED) == partitioned]


@dataclass(frozen=True)
class Several:
    """A baseline with one study or more beside it."""

    pairs: Sequence[Compared]  # the baseline, always A, with each of the others
    means: pd.DataFrame  # geometric means over the pairs that all have
    throughput: pd.DataFrame  # work per second beside others, by workload and of the whole list
    differences: Sequence[Difference]  # of all studies, in the order of `studies`
    work: Sequence[Difference]
    antagonists: Sequence[str] = ()  # of all studies, the baseline's first: their order gives each its colour
    details: Details = NOTHING  # counters, phases, operations, quantiles

    @cached_property
    def studies(self) -> list[Described]:
        """The baseline, then the others."""
        return [self.pairs[0].a, *(pair.b for pair in self.pairs)]

    @cached_property
    def origin(self) -> str:
        """What comes first where not all is measured."""
        return origin_word({name for study in self.studies for name in study.platforms})

    @property
    def between(self) -> str:
        """What the intervals are between: launches or sessions."""
        return _between(self.pairs)

    @property
    def margin(self) -> float:
        """The largest change that counts as none."""
        return self.pairs[0].margin

    @cached_property
    def table(self) -> pd.DataFrame:
        """The rows of all pairs of studies, one below the other."""
        parts = [
            pair.table.assign(letter=pair.b.letter, study_a=pair.a.name, study_b=pair.b.name) for pair in self.pairs
        ]
        return pd.concat(parts, ignore_index=True)[list(COMPARISONS)].astype(dict(COMPARISONS))

    @cached_property
    def history(self) -> pd.DataFrame:
        """What each study's leads lose against alone, in the order of time; studies without a date are left out."""
        parts = [self._losses(study) for study in self.studies if study.date]
        if not parts:
            return frame([], COMPARISON_HISTORY)
        table = pd.concat(parts, ignore_index=True).sort_values("date", kind="stable", ignore_index=True)
        return table[list(COMPARISON_HISTORY)].astype(dict(COMPARISON_HISTORY))

    def _losses(self, study: Described) -> pd.DataFrame:
        """One study's own losses, of every lead beside every antagonist."""
        side = "a" if study is self.pairs[0].a else "b"
        own = self.pairs if side == "a" else [pair for pair in self.pairs if pair.b is study]
        rows = pd.concat([pair.table for pair in own]).drop_duplicates(
            ["mix", "member", "baseline", f"partition_{side}"]
        )
        wanted = (rows["role"] == "lead") & (rows["baseline"] == "alone") & (rows[f"partition_{side}"] == UNMANAGED)
        rows = rows[wanted & rows[f"slowdown_{side}"].notna()]
        numbers = {f"slowdown{end}": rows[f"slowdown_{side}{end}"] for end in ("", "_low", "_high")}
        about = {"letter": study.letter, "study": study.name, "date": study.date, "host": " and ".join(study.hosts)}
        return rows.assign(**numbers, **about, platform=rows[f"platform_{side}"], launches=rows[f"launches_{side}"])


def _between(pairs: Sequence[Compared]) -> str:
    """What intervals of these studies are between."""
    rows = pd.concat([pair.both for pair in pairs])
    sides = [rows[[f"slowdown_{side}_low", f"sessions_{side}"]].set_axis(["loss_low", "over"], axis=1) for side in "ab"]
    both = pd.concat(sides)
    return between(both.assign(over=both["over"].gt(0).map({False: LAUNCHES, True: SESSIONS})))


# The rows of a comparison, as terminal and page show them.


def rows(compared: Compared) -> list[dict[str, Any]]:
    """What both studies have: numbers with their intervals, in words."""
    return [_row(row) for row in records(compared.both)]


def _row(row: Row) -> dict[str, Any]:
    name = row["partition_a"]
    return {
        **row,
        "partition": name if name == row["partition_b"] else f"{name} / {row['partition_b']}",
        "loss_a": as_loss(row["slowdown_a"]),
        "loss_b": as_loss(row["slowdown_b"]),
        "said_a": str(Quantity.loss(row, "slowdown_a")),
        "said_b": str(Quantity.loss(row, "slowdown_b")),
        "said_ratio": str(Quantity.of(row, "ratio", digits=3)),
        "said_rate": str(Quantity.of(row, "baseline_rate_ratio", digits=3)),
        "said_p": chance(row["p_holm"]),
    }


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
        throughput=throughput(sides),
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
    reused = [(record.cohort, record.number) for record in measured if record.reused]  # in no session of this study
    return Described(
        letter=letter,
        name=study.plan.study,
        folder=str(study.folder),
        launches=len(measured),
        platforms=tuple(sorted(platforms)),
        hosts=tuple(sorted(hosts)),
        failed=tuple(record.reason for record in _records(study) if record.failed),
        date=_date(measured),
        sessions=max(1, int(sessions(times_of(study.windows).drop(index=reused, errors="ignore")).nunique())),
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
