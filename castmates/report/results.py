"""Reads what a study left: its tables, its machine's facts, its plan and, where it is named, the study file itself.

`castmates.load` is `load` of this module: figures, the page and notebooks of others read results by the same class.
"""

# ruff: noqa: RUF009 (a StudyTable is a descriptor, and no default that results would share)

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.effects.mask_stamp import masks_stamp
from castmates.analysis.effects.nodes_as_one import as_one
from castmates.analysis.effects.stamps import Stamp, sensitivity, study_verdict
from castmates.errors import CastmatesError
from castmates.files import written_text
from castmates.report.block_record import BlockRecord
from castmates.report.figure_files import FigureFiles, drawn_figures
from castmates.report.machine_facts import MachineFacts
from castmates.report.one_processor import restricted, shown_part
from castmates.report.study_table import StudyTable
from castmates.report.study_table import records as records
from castmates.results import block_tables
from castmates.results.adaptive_looks import Look as AdaptiveLook
from castmates.results.adaptive_looks import read_adaptive_looks
from castmates.results.asked import looks_before
from castmates.results.bundled_records import RecordReader
from castmates.results.bundles import StudyBlocks
from castmates.results.columns import dataflow, operations, primitives, variants
from castmates.results.columns import study as of_study
from castmates.results.columns import trace_summary as of_traces
from castmates.results.columns.block import WINDOWS
from castmates.results.columns.meanings import meanings
from castmates.results.columns.mixes import SYSTEM_OVER_MIXES
from castmates.results.columns.nodes import NODES
from castmates.results.columns.partitions import CURVES, KNEES, PARETO, RECOMMENDATIONS, SENSITIVITY
from castmates.results.columns.prediction import PREDICTIONS, PROFILES
from castmates.results.columns.services import LOADS, SERVICES
from castmates.results.facts_of_nodes import facts_of_nodes
from castmates.results.find import find
from castmates.results.folder import StudyFolder
from castmates.results.looks import Look, read_looks
from castmates.results.plans import analysed, read_plan
from castmates.results.profiles import profile_records
from castmates.results.records import Record, Records, read_json
from castmates.results.rounds import read_decisions
from castmates.results.tables import Tables
from castmates.study.class_caches import is_watched
from castmates.study.decisions import Decision
from castmates.study.model import Study
from castmates.study.node_classes import parts_of
from castmates.study.partitions.planned import masked
from castmates.study.reading import read
from castmates.study.services import service_workloads
from castmates.study.spec import UNMANAGED, Plan

NO_PLAN = Plan(study="", titles={}, mixes=(), controls=(), blocks=())
NO_FACTS, NO_FOLDER = MachineFacts(), StudyFolder(Path())


@dataclass(frozen=True, repr=False)
class Results:
    """Everything that a study left; figures and the page are made of it, and `castmates.load` returns it.

    Tables are pandas DataFrames, each read when it is asked for first; `columns("effects")` explains their columns.
    """

    name: str
    effects: StudyTable = StudyTable("effects", of_study.EFFECTS)
    """A row per mix, partition, baseline and member: slowdown, loss in per cent, intervals, verdict."""
    controls: StudyTable = StudyTable("controls", of_study.CONTROLS)
    """What is known beforehand: A/A, the positive and the negative control."""
    carryover: StudyTable = StudyTable("carryover", of_study.CARRYOVER)
    """Whether the scene before a window shows in its rate."""
    blocks: StudyTable = StudyTable("blocks", of_study.BLOCKS)
    """A row per launch: when, how long, how many windows, how it ended."""
    windows: StudyTable = StudyTable("windows", WINDOWS)
    """A row per round, scene and active member, rejected ones with their reasons."""
    margins: StudyTable = StudyTable("margins", of_study.MARGINS, later=True)
    """How sensitive each lead is, and how much each antagonist disturbs, over the whole matrix."""
    system: StudyTable = StudyTable("system", of_study.SYSTEM, later=True)
    """The combined throughput of a mix: STP, ANTT, fairness."""
    latency: StudyTable = StudyTable("latency", of_study.LATENCY, later=True)
    """How long steps take: p50, p95, p99 by scene."""
    resources: StudyTable = StudyTable("resources", of_study.RESOURCES, later=True)
    """What members used: occupancy, bandwidth, counted events."""
    sensitivity_curves: StudyTable = StudyTable("sensitivity", SENSITIVITY, later=True)
    """Rate against the number of ways; the table `sensitivity`."""
    knees: StudyTable = StudyTable("knees", KNEES, later=True)
    """The smallest number of ways that keeps a lead's rate."""
    pareto: StudyTable = StudyTable("pareto", PARETO, later=True)
    """What the lead loses and the others keep under each partition."""
    recommendations: StudyTable = StudyTable("recommendations", RECOMMENDATIONS, later=True)
    """The smallest share that keeps the study's limit."""
    machine: MachineFacts = NO_FACTS
    plan: Plan = NO_PLAN
    recorded: Sequence[Record] = ()  # the block.json of every block of the plan; of every block without a plan
    looks: tuple[Look, ...] = ()  # at the precision
    study: Study | None = None
    study_text: str = ""
    folder: StudyFolder = NO_FOLDER
    attribution: StudyTable = StudyTable("attribution", of_study.ATTRIBUTION, later=True)
    """The parts of each loss against solo."""
    study_file: str = ""  # as it was named
    decisions: tuple[Decision, ...] = ()  # on the rounds of companies
    stamps: StudyTable = StudyTable("stamps", of_study.STAMPS, later=True)
    """What is stamped on the whole study: origin, control, sensitivity, masks."""
    mitigations: StudyTable = StudyTable("mitigations", of_study.MITIGATIONS, later=True)
    """What each thing that is tried against a loss gives back, and what it costs the others."""
    distances: StudyTable = StudyTable("distances", of_study.DISTANCES, later=True)
    """A lead's loss by the number and the nearness of its antagonists."""
    nodes: StudyTable = StudyTable("nodes", NODES, later=True)
    """What each node came to: its effects, whether nodes differ, its own controls."""
    system_over_mixes: StudyTable = StudyTable("system_over_mixes", SYSTEM_OVER_MIXES, later=True)
    """The combined throughput over random mixes, pairs or groups."""
    services: StudyTable = StudyTable("services", SERVICES, later=True)
    """How much open-loop services answer of their load, and how late."""
    loads: StudyTable = StudyTable("loads", LOADS, later=True)
    """The highest load of a service that keeps the study's limit on its latency."""
    predictions: StudyTable = StudyTable("predictions", PREDICTIONS, later=True)
    """What pairs of a grid lose, measured or predicted, and how far predictions are off."""
    profiles: StudyTable = StudyTable("profiles", PROFILES, later=True)
    """The sensitivity and the pressure of each workload, by its bubbles and reporters."""
    curves: StudyTable = StudyTable("curves", CURVES, later=True)
    """Of an adaptive study, what was measured of each curve, and what is interpolated between."""
    operation_effects: StudyTable = StudyTable("operation_effects", operations.OPERATION_EFFECTS, later=True)
    """Which groups of operations take how much longer beside others."""
    operation_summary: StudyTable = StudyTable("operation_summary", operations.OPERATION_SUMMARY, later=True)
    """What each operation takes of a step in each scene; below the same by type, and by scope at every depth."""
    operation_types: StudyTable = StudyTable("operation_types", operations.OPERATION_TYPES, later=True)
    operation_layers: StudyTable = StudyTable("operation_layers", operations.OPERATION_LAYERS, later=True)
    iterations: StudyTable = StudyTable("iterations", operations.ITERATIONS, later=True)
    """The traced steps of each scene."""
    input_pipeline: StudyTable = StudyTable("input_pipeline", operations.INPUT_PIPELINE, later=True)
    """Whether steps wait for their input; below, whether those do that begin with the first record."""
    first_epoch: StudyTable = StudyTable("first_epoch", operations.FIRST_EPOCH, later=True)
    thread_pools: StudyTable = StudyTable("thread_pools", operations.THREAD_POOLS, later=True)
    """How busy the threads of each pool are."""
    not_compared: StudyTable = StudyTable("not_compared", operations.NOT_COMPARED, later=True)
    memory_use: StudyTable = StudyTable("memory_use", operations.MEMORY_USE, later=True)
    """What allocators give out in a step, and for which operations."""
    variant_effects: StudyTable = StudyTable("variant_effects", variants.VARIANT_EFFECTS, later=True)
    """Whether a lead in other settings loses more or less than the lead as it is."""
    input_stages: StudyTable = StudyTable("input_stages", operations.INPUT_STAGES, later=True)
    """What each stage of an input pipeline does for a step; below, what operations have a GPU run."""
    kernels: StudyTable = StudyTable("kernels", operations.KERNELS, later=True)
    primitive_summary: StudyTable = StudyTable("primitive_summary", primitives.PRIMITIVE_SUMMARY, later=True)
    """What oneDNN executes in a step; below the instructions that are used, and what operations reach of the roofs."""
    isa_use: StudyTable = StudyTable("isa_use", primitives.ISA_USE, later=True)
    roofline: StudyTable = StudyTable("roofline", primitives.ROOFLINE, later=True)
    trace_summary: StudyTable = StudyTable("trace_summary", of_traces.TRACE_SUMMARY, later=True)
    """How the threads of each member got on in each scene of a trace; below, where their time went, and what came."""
    trace_waits: StudyTable = StudyTable("trace_waits", of_traces.TRACE_WAITS, later=True)
    trace_events: StudyTable = StudyTable("trace_events", of_traces.TRACE_EVENTS, later=True)
    trace_pools: StudyTable = StudyTable("trace_pools", of_traces.TRACE_POOLS, later=True)
    dataflow_nodes: StudyTable = StudyTable("dataflow_nodes", dataflow.DATAFLOW_NODES, later=True)
    """The graph of each lead's step; below, the critical path of steps, and what changes in it beside others."""
    dataflow_edges: StudyTable = StudyTable("dataflow_edges", dataflow.DATAFLOW_EDGES, later=True)
    critical_path: StudyTable = StudyTable("critical_path", dataflow.CRITICAL_PATH, later=True)
    path_operations: StudyTable = StudyTable("path_operations", dataflow.PATH_OPERATIONS, later=True)
    path_effects: StudyTable = StudyTable("path_effects", dataflow.PATH_EFFECTS, later=True)
    path_changes: StudyTable = StudyTable("path_changes", dataflow.PATH_CHANGES, later=True)
    adaptive_looks: tuple[AdaptiveLook, ...] = ()  # of an adaptive study
    extended: tuple[int, ...] = ()  # numbers of launches at which its results were there when more were added

    def __repr__(self) -> str:
        """Name the study; its tables would fill the screen."""
        return f"<results of {self.name}: {len(self.recorded)} blocks in {self.folder}>"

    def block_table(
        self, name: str, only: Collection[tuple[str, int]] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One table of all blocks, or of these (company, number).

        All steps or samples of a large study do not fit into memory: take `block_parts` for them.
        """
        if only is None:
            return self._measured.read(name, columns)
        wanted = {(company, str(number)) for company, number in only}
        chosen = [place for place in self.places if (place.parts[-2], place.parts[-1]) in wanted]
        return block_tables.read(chosen, name, columns)

    def block_parts(
        self, name: str, columns: Sequence[str] | None = None, categories: Sequence[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """One table of all blocks, some whole blocks at a time; the columns `categories` as categories."""
        return self._measured.parts(name, columns, categories)

    @cached_property
    def slices(self) -> pd.DataFrame:
        """A row per slice and active member: the uninterrupted stretches that windows consist of."""
        return self.block_table("slices")

    @cached_property
    def steps(self) -> pd.DataFrame:
        """A row per step inside a window, with the seconds of its phases where they are reported."""
        return self.block_table("steps")

    @cached_property
    def samples(self) -> pd.DataFrame:
        """A row per reading of a collector or a monitor: occupancy, bandwidth, frequency, other programs."""
        return self.block_table("samples")

    @cached_property
    def counters(self) -> pd.DataFrame:
        """A row per window, member and counted event."""
        return self.block_table("counters")

    @cached_property
    def topdown(self) -> pd.DataFrame:
        """A row per window, member and Top-Down metric."""
        return self.block_table("topdown")

    @cached_property
    def layers(self) -> pd.DataFrame:
        """A row per layer of a lead's model, from profiled windows."""
        return self.block_table("layers")

    @cached_property
    def figures(self) -> Mapping[str, FigureFiles]:
        """The figures that were drawn, by name: their files, their source data, their captions."""
        return drawn_figures(self.folder)

    @staticmethod
    def columns(table: str) -> pd.DataFrame:
        """The columns of a table in their order: name, type and meaning, as the data contract has them."""
        return pd.DataFrame([column._asdict() for column in meanings(table)])

    def look_for_blocks(self) -> None:
        """Find out where the blocks' tables are: it takes a while where there are thousands of them."""
        self._measured.together()

    @cached_property
    def _measured(self) -> StudyBlocks:
        return StudyBlocks(self.folder, self.places)

    @cached_property
    def places(self) -> list[Path]:
        """The folders of the plan's blocks that are measured."""
        return [file.parent for file in self.record_files]

    @cached_property
    def record_files(self) -> list[Path]:
        """The records of the plan's blocks that are measured: one that no plan names any more is left out."""
        return _record_files(self.folder, self.plan)

    @cached_property
    def records(self) -> list[BlockRecord]:
        """What each block records of itself."""
        return [BlockRecord(record) for record in self.recorded]

    @cached_property
    def profiled(self) -> list[dict[str, Any]]:
        """What each profile launch records of itself."""
        return profile_records(self.plan, self.folder)

    @property
    def measured_records(self) -> list[BlockRecord]:
        """The records of the blocks that measured anything."""
        return [record for record in self.records if record.measured]

    @cached_property
    def further_nodes(self) -> list[MachineFacts]:
        """The facts of the nodes beside `machine` that measured launches of the study."""
        return [MachineFacts.model_validate(read_json(file)) for file in self.folder.node_files()]

    @property
    def title(self) -> str:
        """The heading that the study gave itself, or its name."""
        return (self.study.title if self.study else "") or self.name

    @property
    def margin(self) -> float | None:
        """The largest change that counts as none; None where the study file is not known."""
        return self.study.margin if self.study else None

    @property
    def leads(self) -> list[str]:
        """The leads in the order in which the tables name them."""
        named = [*self.effects["lead"], *self.controls["lead"], *self.blocks["lead"]]
        return list(dict.fromkeys(named))

    @cached_property
    def platforms(self) -> list[str]:
        """Where the numbers come from: measured, emulated, modelled."""
        tables = (self.effects, self.controls, self.blocks, self.windows)
        return sorted({name for table in tables for name in table["platform"].dropna().unique() if name})

    @cached_property
    def stamp(self) -> Stamp:
        """Whether the study can be trusted, in a word and in a sentence."""
        return study_verdict(self.controls)

    @cached_property
    def sensitivity(self) -> Stamp:
        """Whether it found a loss that must be there."""
        return sensitivity(self.controls)

    @cached_property
    def masks(self) -> Stamp | None:
        """Whether the masks of its partitions were seen to do something; None where none was set."""
        machine: Mapping[str, Any] = {"way_masks": self.machine.way_masks}
        if self.plan.machines:
            known, parts = read_json(self.folder.machine_file), parts_of(self.plan)
            machine = as_one([node for one in parts for node in facts_of_nodes(self.folder, one, self.windows, known)])
        return masks_stamp(masked(self.plan) & set(self.effects["partition"]), self.platforms, machine)

    @cached_property
    def against_solo(self) -> dict[str, list[dict[str, Any]]]:
        """Each lead's rows against solo, under partitions too."""
        by_lead: dict[str, list[dict[str, Any]]] = {}
        for row in records(self.lead_effects("solo", under_partitions=True)):
            by_lead.setdefault(row["lead"], []).append(row)
        return by_lead

    @property
    def partitioned(self) -> bool:
        """Whether anything was tried on the cache."""
        return bool((self.effects["partition"] != UNMANAGED).any())

    @property
    def phases(self) -> bool:
        """Whether some lead is to report the phases of its steps."""
        return any(company.lead.phases for company in self.plan.companies)

    @cached_property
    def service_workloads(self) -> set[str]:
        """Workloads that are open-loop services."""
        return service_workloads(self.plan)

    @property
    def watched(self) -> bool:
        """Whether a machine of the plan reports what its last-level caches hold."""
        return is_watched(self.plan)

    def lead_effects(self, baseline: str, under_partitions: bool = False) -> pd.DataFrame:
        """The leads' rows against one baseline; without a partition, unless the others are asked for too."""
        rows = self.effects[(self.effects["role"] == "lead") & (self.effects["baseline"] == baseline)]
        return rows if under_partitions else rows[rows["partition"] == UNMANAGED]


def load(study: Path | str) -> Results:
    """Open the results of a study, named by its folder results/<study> or by its file; tables are read when asked for.

    >>> import castmates
    >>> results = castmates.load("results/first-look")
    >>> results.effects[["mix", "baseline", "degradation_pct", "verdict"]]
    """
    folder, file = find(Path(study))
    name = folder.path.resolve().name
    here = folder.path.resolve() == StudyFolder.of(name).path.resolve()
    return _opened(folder, file if here else None)  # elsewhere, the study of this name is another one


def read_results(folder: Path, study_file: Path | None = None) -> Results:
    """Read results/<study> whole; what a study may lack (machine facts, a plan) is empty, a lacking table an error."""
    results = _opened(StudyFolder(folder), study_file)
    for field in fields(results):
        getattr(results, field.name)
    part = shown_part(results)
    return results if part is None else restricted(results, part, _recorded(results.folder, part))


def _opened(here: StudyFolder, study_file: Path | None) -> Results:
    if not here.tables.is_dir():
        raise CastmatesError(
            f"{here}: there is no folder 'tables' in it; give the results folder of an analysed study, or "
            f"{Tables(here, study_file).make}."
        )
    plan = analysed(read_plan(here.plan_file), here) if here.plan_file.exists() else NO_PLAN
    text = written_text(study_file, "the study") if study_file else ""
    return Results(
        name=plan.study or here.path.resolve().name,
        machine=MachineFacts.model_validate(read_json(here.machine_file)),
        plan=plan,
        recorded=_recorded(here, plan),
        looks=tuple(read_looks(plan, here)),
        adaptive_looks=tuple(read_adaptive_looks(plan, here)),
        study=read(Study, text, str(study_file)) if study_file else None,
        study_text=text,
        folder=here,
        study_file=str(study_file or ""),
        decisions=tuple(read_decisions(here)),
        extended=looks_before(here),
    )


def _recorded(folder: StudyFolder, plan: Plan) -> Records:
    return Records(_record_files(folder, plan), RecordReader(folder).read)


def _record_files(folder: StudyFolder, plan: Plan) -> list[Path]:
    if plan is NO_PLAN:
        return folder.record_files()
    return sorted(file for file in map(folder.record_file, plan.blocks) if file.is_file())
