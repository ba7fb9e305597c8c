"""The measured launches of a plan -> the study's tables, and of these its figures, the answer and the page.

One process makes all of it: starting Python with pandas and matplotlib takes longer than the tables of most studies.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import scipy.special  # noqa: F401 (every interval needs it, in each of the processes that begin with what is read here)

from castmates import plugins
from castmates.analysis.effects.pooling import pooled, without_hosts
from castmates.analysis.effects.stamps import as_one
from castmates.analysis.effects.system import METRICS
from castmates.analysis.effects.verdicts import EFFECT_LEVEL, effect_level
from castmates.analysis.explanations.evolution import COLUMNS
from castmates.analysis.explanations.evolution import NAMES as STEP_NAMES
from castmates.analysis.explanations.power import COLLECTORS as PACKAGE_SOURCES
from castmates.analysis.explanations.resources import NAMES, NEEDED
from castmates.analysis.explanations.services import without_saturated
from castmates.analysis.partitions.held import States, as_held, held_by, states
from castmates.analysis.statistics.pairs import planned
from castmates.errors import CastmatesError
from castmates.files import replace_text, written_text
from castmates.pipeline.confirm import confirmed_rows
from castmates.pipeline.estimates import Estimates, write
from castmates.report.answer.answer import answer
from castmates.report.answer.kept import keep_answer
from castmates.report.answer.parts import answer_lines
from castmates.report.export.graph_svg import write_graphs
from castmates.report.figures.drawing import draw_figures
from castmates.report.page.page import shown, write_page
from castmates.report.results import read_results
from castmates.results import launch_tables
from castmates.results.asked import looks_before
from castmates.results.bundle_names import RecordReader
from castmates.results.bundles import StudyLaunches
from castmates.results.columns.launch import SLICES
from castmates.results.columns.registry import written_by
from castmates.results.folder import StudyFolder
from castmates.results.known_nodes import facts_of_nodes
from castmates.results.plans import read_plan
from castmates.results.records import BROKEN, read_json
from castmates.results.tables import remove_left_over, tables_of
from castmates.study import capabilities
from castmates.study.masks import popcount
from castmates.study.memory_peak import Peak
from castmates.study.model import Study
from castmates.study.reading import read_keys
from castmates.study.spec import Plan

RULE = "analyse"


@dataclass(frozen=True)
class Terms:
    """By what the effects are judged."""

    margin: float  # the study's: a smaller change is none
    isolated: str | None = None  # the isolating partition, where the study names it
    machine: Mapping[str, Any] = field(default_factory=dict)  # its facts
    level: float = EFFECT_LEVEL  # a smaller p-value proves a loss
    limit_pct: float | None = None  # the largest loss of a lead that a recommended partition may leave


def analyse(folder: StudyFolder, study_file: Path, jobs: int = 1) -> None:
    """Write the tables of a study, then what people read of them; so many tables and figures at a time."""
    study = read_keys(Study, written_text(study_file, "the study"), str(study_file))
    machine, level = read_json(folder.machine_file), effect_level(looks_before(folder))
    terms = Terms(study.margin, study.attribution.isolated, machine, level, study.recommend.lead_loss)
    # Most tables are small: choosing rows takes pandas several times as long where Arrow keeps the names.
    with pd.option_context("mode.string_storage", "python"):
        write_tables(read_plan(folder.plan_file), folder, terms, folder.tables, jobs)
        results = read_results(folder.path, study_file)
        draw_figures(shown(results), results, folder.figures, jobs)
        found = answer(results)
        replace_text(folder.answer_file, "".join(f"{line}\n" for line in answer_lines(found)))
        keep_answer(results, found)
        write_graphs(results, folder)
        write_page(results, folder.figures, folder.page_file, found)


def write_tables(plan: Plan, folder: StudyFolder, terms: Terms, output: Path, jobs: int = 1) -> None:
    """Read every measured launch of the plan, estimate, and write all tables into `output`; so many at a time.

    With a wanted precision a plan holds more launches than it may turn out to need: those measured count.
    """
    asked, reader = plan, RecordReader(folder)
    plan = folder.measured(plan)  # without a launch where steps were only traced
    measured = StudyLaunches(folder, folder.places(plan))
    every = measured.windows()
    kept = without_hosts(plan, every, plan.ignored_hosts)
    windows = planned(every, kept)
    plans = pooled(kept, windows)
    windows = without_saturated(plans, windows)
    every_part: dict[str, Any] = {
        "windows": windows,
        "margin": terms.margin,
        "isolated": terms.isolated,
        "level": terms.level,
        "limit_pct": terms.limit_pct,
    }
    every_part["added"] = plugins.added("metrics", _wrong, taken=METRICS)
    # All columns where some of them may be of phases.
    columns = None if capabilities.PHASES.asked(plan) else COLUMNS
    every_part["steps"] = partial(measured.parts, "steps", columns, categories=STEP_NAMES)
    every_part["slices"] = partial(measured.parts, "slices", list(SLICES))
    parts = [every_part | _facts_of(own, windows, measured, reader, terms.machine) for own in plans]
    whole = {
        "study": plan,
        "parts": [part["plan"] for part in parts],
        "windows": windows,
        "machine": as_one([part["machine"] for part in parts]),
        "ignored_hosts": plan.ignored_hosts,
        "left_out": len(plan.launches) - len(kept.launches),
        "records": partial(_records, plan, folder, reader),
        "latency_limits": plan.latency_limits,
    }
    write(Estimates(RULE, whole, parts), written_by(RULE, tables_of(asked, folder)), output, jobs)
    remove_left_over(asked, folder, output)


def _facts_of(
    part: Plan, windows: pd.DataFrame, measured: StudyLaunches, reader: RecordReader, machine: Mapping[str, Any]
) -> dict[str, Any]:
    """The facts of what is estimated together; of a class, `machine` has those of the nodes that measured it."""
    plan, held = what_was_held(part, measured.folder, reader)
    facts = as_one(facts_of_nodes(measured.folder, part, windows, machine)) if part.machine else machine
    peak = Peak.of(facts.get("memory_peak"))
    readings = partial(_readings, plan, measured, reader)
    return {
        "plan": plan,
        "held": held,
        "machine": facts,
        "peak": peak,
        "readings": readings,
        "cache_ways": popcount(part.cache.usable) if part.cache else None,
        "confirmed": partial(confirmed_rows, part, measured.folder),
    }


def _records(plan: Plan, folder: StudyFolder, reader: RecordReader) -> list[dict[str, Any]]:
    """What launches say of themselves."""
    read = [reader.read(folder.record_file(launch)) for launch in plan.launches]
    if broken := [record["reason"] for record in read if record.get("status") == BROKEN]:
        raise CastmatesError(broken[0])
    return read


def _readings(plan: Plan, measured: StudyLaunches, reader: RecordReader) -> Iterator[dict[str, pd.DataFrame]]:
    """What was read and counted, some launches at a time; samples and slices only where something of use was read."""
    monitored = (plan.cache is not None and bool(plan.cache.events)) or _read_packages(plan, measured.folder, reader)
    for places in measured.together():
        yield {
            name: launch_tables.read(
                places if monitored or name not in ("samples", "slices") else [], name, columns, NAMES[name]
            )
            for name, columns in NEEDED.items()
        }


def _read_packages(plan: Plan, folder: StudyFolder, reader: RecordReader) -> bool:
    """Check whether clocks, throttling or packages were read; the first launch of each cohort stands for all."""
    first = {launch.cohort.id: launch for launch in reversed(plan.launches)}
    read = (reader.read(folder.record_file(launch)).get("reading", ()) for launch in first.values())
    return any(name in PACKAGE_SOURCES for names in read for name in names)


def _wrong(metric: object) -> str:
    """Why this is no metric of a plug-in; "" where it is one."""
    return "" if callable(metric) else f"it is a {type(metric).__name__}, and no function of the members' slowdowns"


def what_was_held(plan: Plan, folder: StudyFolder, records: RecordReader | None = None) -> tuple[Plan, States]:
    """The plan with what the processor held in the place of what was asked, and whether that differs, by partition."""
    if not any(mix.partitions for mix in plan.mixes):
        return plan, {}
    files = (folder.record_file(launch) for launch in plan.launches)
    read = (records or RecordReader(folder)).read
    found = held_by(read(file) for file in files if file.is_file())
    return as_held(plan, found), states(plan, found)
