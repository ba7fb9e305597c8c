"""The measured blocks of a plan -> the study's tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from castmates import plugins
from castmates.analysis.comparison.variants import variant_effects
from castmates.analysis.effects.blocks import blocks_table
from castmates.analysis.effects.carryover import estimate_carryover
from castmates.analysis.effects.controls import estimate_controls
from castmates.analysis.effects.distances import estimate_distances
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.effects.margins import margins
from castmates.analysis.effects.nodes import estimate_nodes
from castmates.analysis.effects.nodes_as_one import as_one
from castmates.analysis.effects.nodes_stamp import nodes_stamps
from castmates.analysis.effects.pooling import joined, pooled, without_hosts
from castmates.analysis.effects.stamps import stamps_table
from castmates.analysis.effects.system import METRICS, system_metrics
from castmates.analysis.effects.system_over_mixes import system_over_mixes
from castmates.analysis.effects.verdicts import EFFECT_LEVEL
from castmates.analysis.explanations.latency import latencies
from castmates.analysis.explanations.power import COLLECTORS as PACKAGE_SOURCES
from castmates.analysis.explanations.resources import NAMES as NAMES_READ
from castmates.analysis.explanations.resources import NEEDED, resources
from castmates.analysis.explanations.services import services, without_saturated
from castmates.analysis.explanations.steps import COLUMNS, NAMES
from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.analysis.partitions.held import States, as_held, held_by, states
from castmates.analysis.partitions.mitigations import estimate_mitigations
from castmates.analysis.prediction.table import estimate_predictions
from castmates.analysis.statistics.pairs import planned
from castmates.errors import CastmatesError
from castmates.parallel import side_by_side
from castmates.results import block_tables
from castmates.results.bundled_records import RecordReader
from castmates.results.bundles import StudyBlocks
from castmates.results.columns.block import SLICES
from castmates.results.columns.registry import written_by
from castmates.results.facts_of_nodes import facts_of_nodes
from castmates.results.folder import StudyFolder
from castmates.results.plans import analysed
from castmates.results.records import BROKEN
from castmates.results.tables import tables_of, write_table, written_together
from castmates.study.memory_peak import Peak
from castmates.study.partitions.planned import masked
from castmates.study.spec import Plan


@dataclass(frozen=True)
class Terms:
    """By what the effects are judged."""

    margin: float  # the study's: a smaller change is none
    isolated: str | None = None  # the isolating partition, where the study names it
    machine: Mapping[str, Any] = field(default_factory=dict)  # its facts
    level: float = EFFECT_LEVEL  # a smaller p-value proves a loss

    def of(self, part: Plan, windows: pd.DataFrame, folder: StudyFolder) -> "Terms":
        """The terms of a part of the plan: for a class, the facts of the nodes that measured it."""
        if not part.machine:
            return self
        return replace(self, machine=as_one(facts_of_nodes(folder, part, windows, self.machine)))


@dataclass(frozen=True)
class _Part:
    """What is estimated together."""

    plan: Plan  # with what the processor held
    held: States
    terms: Terms


def write_tables(plan: Plan, folder: StudyFolder, terms: Terms, output: Path, jobs: int = 1) -> None:
    """Read every measured block of the plan, estimate, and write all tables into `output`; so many at a time.

    With a wanted precision a plan holds more blocks than it may turn out to need: those measured count.
    """
    names = set(written_by("estimate_effects", tables_of(plan, folder)))
    plan, records = analysed(plan, folder), RecordReader(folder)
    measured = StudyBlocks(folder, folder.places(plan))
    every = measured.windows()
    kept = without_hosts(plan, every, plan.ignored_hosts)
    windows = planned(every, kept)
    plans = pooled(kept, windows)
    windows = without_saturated(plans, windows)
    parts = [_Part(*what_was_held(part, folder, records), terms.of(part, windows, folder)) for part in plans]

    def over(make: Callable[[Plan], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
        return lambda: joined([make(part.plan) for part in parts])

    added = plugins.added("metrics", _wrong, taken=METRICS)
    tables: dict[str, Callable[[], pd.DataFrame]] = {  # those that take longest first
        "resources": over(lambda part: resources(part, windows, _readings(part, folder, measured, records))),
        "latency": over(lambda part: latencies(part, windows, measured.parts("steps", COLUMNS, categories=NAMES))),
        "services": over(lambda part: services(part, windows)),
        "blocks": lambda: _blocks(plan, folder, records),
        "windows": lambda: windows,
        "carryover": over(lambda part: estimate_carryover(part, measured.parts("slices", list(SLICES)))),
        "system": over(lambda part: system_metrics(part, windows, added)),
        "system_over_mixes": over(lambda part: system_over_mixes(part, windows, added)),
        "margins": over(lambda part: margins(part, windows)),
        "mitigations": over(lambda part: estimate_mitigations(part, windows, terms.margin)),
    }
    with written_together(output, "estimate_effects") as made:
        tasks = {name: partial(_write, make, made / name) for name, make in tables.items() if name in names}
        left_out = len(plan.blocks) - len(kept.blocks)
        tasks["effects"] = partial(_write_verdicts, plan, parts, windows, left_out, names, made)
        side_by_side(tasks, jobs)


def _wrong(metric: object) -> str:
    """Why this is no metric of a plug-in; "" where it is one."""
    return "" if callable(metric) else f"it is a {type(metric).__name__}, and no function of the members' slowdowns"


def _write(make: Callable[[], pd.DataFrame], stem: Path) -> None:
    write_table(make(), stem)


def what_was_held(plan: Plan, folder: StudyFolder, records: RecordReader | None = None) -> tuple[Plan, States]:
    """The plan with what the processor held in the place of what was asked, and whether that differs, by partition."""
    if not any(mix.partitions for mix in plan.mixes):
        return plan, {}
    files = (folder.record_file(block) for block in plan.blocks)
    read = (records or RecordReader(folder)).read
    found = held_by(read(file) for file in files if file.is_file())
    return as_held(plan, found), states(plan, found)


def _blocks(plan: Plan, folder: StudyFolder, records: RecordReader) -> pd.DataFrame:
    read = [records.read(folder.record_file(block)) for block in plan.blocks]
    if broken := [record["reason"] for record in read if record.get("status") == BROKEN]:
        raise CastmatesError(broken[0])
    return blocks_table(read, plan.ignored_hosts)


def _write_verdicts(
    plan: Plan, parts: Sequence[_Part], windows: pd.DataFrame, left_out: int, names: set[str], folder: Path
) -> None:
    """Write the effects, and what is made of them."""
    made = [_verdicts(part, windows) for part in parts]
    tables = {name: joined([each[name] for each in made]) for name in made[0]}
    more = nodes_stamps(plan, [part.plan for part in parts], tables["nodes"], left_out)
    platforms = set(windows["platform"])
    machine = as_one([part.terms.machine for part in parts])
    tried = masked(plan) & set(tables["effects"]["partition"])
    tables["stamps"] = stamps_table(plan.study, tables["controls"], tried, platforms, machine, more)
    for name in names & tables.keys():
        write_table(tables[name], folder / name)


def _verdicts(part: _Part, windows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    plan, terms, held = part.plan, part.terms, part.held
    peak = Peak.of(terms.machine.get("memory_peak"))
    effects = estimate_effects(plan, windows, terms.margin, terms.level, held, peak)
    return {
        "effects": effects,
        "controls": estimate_controls(plan, windows, terms.margin),
        "attribution": estimate_attribution(plan, windows, terms.margin, terms.isolated, effects, held),
        "distances": estimate_distances(plan, windows, effects),
        "variant_effects": variant_effects(plan, windows, terms.margin, terms.level),
        "nodes": estimate_nodes(plan, windows, terms.margin),
        **estimate_predictions(plan, effects),
    }


def _readings(
    plan: Plan, folder: StudyFolder, measured: StudyBlocks, records: RecordReader
) -> Iterator[dict[str, pd.DataFrame]]:
    """What was read and counted, some blocks at a time; samples and slices only where something of use was read."""
    monitored = (plan.cache is not None and bool(plan.cache.events)) or _read_packages(plan, folder, records)
    for places in measured.together():
        yield {
            name: block_tables.read(
                places if monitored or name not in ("samples", "slices") else [], name, columns, NAMES_READ[name]
            )
            for name, columns in NEEDED.items()
        }


def _read_packages(plan: Plan, folder: StudyFolder, records: RecordReader) -> bool:
    """Check whether clocks, throttling or packages were read; the first launch of each company stands for all."""
    first = {block.company.id: block for block in reversed(plan.blocks)}
    read = (records.read(folder.record_file(block)).get("reading", ()) for block in first.values())
    return any(name in PACKAGE_SOURCES for names in read for name in names)
