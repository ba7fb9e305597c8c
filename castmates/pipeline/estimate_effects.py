"""The measured blocks of a plan: the facts of which the study's tables are made."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from castmates import plugins
from castmates.analysis.effects.nodes_as_one import as_one
from castmates.analysis.effects.pooling import pooled, without_hosts
from castmates.analysis.effects.system import METRICS, Metric
from castmates.analysis.effects.verdicts import EFFECT_LEVEL
from castmates.analysis.explanations.power import COLLECTORS as PACKAGE_SOURCES
from castmates.analysis.explanations.resources import NAMES, NEEDED
from castmates.analysis.explanations.services import without_saturated
from castmates.analysis.explanations.steps import COLUMNS
from castmates.analysis.explanations.steps import NAMES as STEP_NAMES
from castmates.analysis.partitions.held import States, as_held, held_by, states
from castmates.analysis.statistics.pairs import planned
from castmates.errors import CastmatesError
from castmates.pipeline.estimates import Estimates, write
from castmates.results import block_tables
from castmates.results.bundled_records import RecordReader
from castmates.results.bundles import StudyBlocks
from castmates.results.columns.block import SLICES
from castmates.results.columns.registry import written_by
from castmates.results.facts_of_nodes import facts_of_nodes
from castmates.results.folder import StudyFolder
from castmates.results.plans import analysed
from castmates.results.records import BROKEN
from castmates.results.tables import remove_left_over, tables_of
from castmates.study.memory_peak import Peak
from castmates.study.spec import Plan

RULE = "estimate_effects"


@dataclass(frozen=True)
class Terms:
    """By what the effects are judged."""

    margin: float  # the study's: a smaller change is none
    isolated: str | None = None  # the isolating partition, where the study names it
    machine: Mapping[str, Any] = field(default_factory=dict)  # its facts
    level: float = EFFECT_LEVEL  # a smaller p-value proves a loss


@dataclass(frozen=True)
class _Part(Terms):
    """The facts of what is estimated together; for a class, `machine` has those of the nodes that measured it."""

    plan: Plan = field(kw_only=True)  # with what the processor held
    held: States = field(kw_only=True)
    windows: pd.DataFrame = field(kw_only=True)
    added: Mapping[str, Metric] = field(kw_only=True)
    _measured: StudyBlocks = field(kw_only=True)
    _reader: RecordReader = field(kw_only=True)

    @property
    def peak(self) -> Peak | None:
        """The most memory traffic that was measured of the machine."""
        return Peak.of(self.machine.get("memory_peak"))

    @property
    def steps(self) -> Iterator[pd.DataFrame]:
        """The heartbeats, some blocks at a time."""
        return self._measured.parts("steps", COLUMNS, categories=STEP_NAMES)

    @property
    def slices(self) -> Iterator[pd.DataFrame]:
        """The slices, some blocks at a time."""
        return self._measured.parts("slices", list(SLICES))

    @property
    def readings(self) -> Iterator[dict[str, pd.DataFrame]]:
        """What was read and counted, some blocks at a time; samples and slices only where something of use was read."""
        monitored = (self.plan.cache is not None and bool(self.plan.cache.events)) or self._read_packages
        for places in self._measured.together():
            yield {
                name: block_tables.read(
                    places if monitored or name not in ("samples", "slices") else [], name, columns, NAMES[name]
                )
                for name, columns in NEEDED.items()
            }

    @property
    def _read_packages(self) -> bool:
        """Whether clocks, throttling or packages were read; the first launch of each company stands for all."""
        first = {block.company.id: block for block in reversed(self.plan.blocks)}
        read = (
            self._reader.read(self._measured.folder.record_file(block)).get("reading", ()) for block in first.values()
        )
        return any(name in PACKAGE_SOURCES for names in read for name in names)


@dataclass(frozen=True)
class _Whole:
    """The facts of the study."""

    study: Plan
    parts: Sequence[Plan]
    windows: pd.DataFrame
    machine: Mapping[str, Any]
    left_out: int  # launches
    _reader: RecordReader
    _folder: StudyFolder

    @property
    def ignored_hosts(self) -> Sequence[str]:
        """Nodes whose launches are left out."""
        return self.study.ignored_hosts

    @property
    def records(self) -> list[dict[str, Any]]:
        """What launches say of themselves."""
        read = [self._reader.read(self._folder.record_file(block)) for block in self.study.blocks]
        if broken := [record["reason"] for record in read if record.get("status") == BROKEN]:
            raise CastmatesError(broken[0])
        return read


def write_tables(plan: Plan, folder: StudyFolder, terms: Terms, output: Path, jobs: int = 1) -> None:
    """Read every measured block of the plan, estimate, and write all tables into `output`; so many at a time.

    With a wanted precision a plan holds more blocks than it may turn out to need: those measured count.
    """
    plan, reader = analysed(plan, folder), RecordReader(folder)
    measured = StudyBlocks(folder, folder.places(plan))
    every = measured.windows()
    kept = without_hosts(plan, every, plan.ignored_hosts)
    windows = planned(every, kept)
    plans = pooled(kept, windows)
    windows = without_saturated(plans, windows)
    added = plugins.added("metrics", _wrong, taken=METRICS)
    parts = []
    for own in plans:
        machine = as_one(facts_of_nodes(folder, own, windows, terms.machine)) if own.machine else terms.machine
        held_plan, held = what_was_held(own, folder, reader)
        parts.append(
            _Part(
                terms.margin, terms.isolated, machine, terms.level, plan=held_plan, held=held, windows=windows,
                added=added, _measured=measured, _reader=reader,
            )
        )  # fmt: skip
    machine = as_one([part.machine for part in parts])
    left_out = len(plan.blocks) - len(kept.blocks)
    whole = _Whole(plan, [part.plan for part in parts], windows, machine, left_out, reader, folder)
    names = written_by(RULE, tables_of(plan, folder))
    write(Estimates(RULE, whole, parts), names, output, jobs, slow=("readings", "steps", "slices"))
    remove_left_over(plan, folder, output)


def _wrong(metric: object) -> str:
    """Why this is no metric of a plug-in; "" where it is one."""
    return "" if callable(metric) else f"it is a {type(metric).__name__}, and no function of the members' slowdowns"


def what_was_held(plan: Plan, folder: StudyFolder, records: RecordReader | None = None) -> tuple[Plan, States]:
    """The plan with what the processor held in the place of what was asked, and whether that differs, by partition."""
    if not any(mix.partitions for mix in plan.mixes):
        return plan, {}
    files = (folder.record_file(block) for block in plan.blocks)
    read = (records or RecordReader(folder)).read
    found = held_by(read(file) for file in files if file.is_file())
    return as_held(plan, found), states(plan, found)
