"""Reads what a study left: its tables, its machine's facts, its plan and, where it is named, the study file itself."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.effects.mask_stamp import masks_stamp
from castmates.analysis.effects.stamps import Stamp, sensitivity, study_verdict
from castmates.errors import CastmatesError
from castmates.report.facts import BlockRecord, MachineFacts
from castmates.results import block_tables
from castmates.results.bundles import StudyBlocks
from castmates.results.columns.block import WINDOWS
from castmates.results.columns.partitions import KNEES, PARETO, RECOMMENDATIONS, SENSITIVITY
from castmates.results.columns.study import (
    ATTRIBUTION,
    BLOCKS,
    CARRYOVER,
    CONTROLS,
    EFFECTS,
    LATENCY,
    MARGINS,
    RESOURCES,
    SYSTEM,
    frame,
)
from castmates.results.folder import StudyFolder
from castmates.results.looks import Look, read_looks
from castmates.results.plans import analysed, read_plan
from castmates.results.records import Record, Records, read_json, read_record
from castmates.results.rounds import read_decisions
from castmates.results.tables import Tables
from castmates.study.decisions import Decision
from castmates.study.model import Study
from castmates.study.reading import read
from castmates.study.spec import UNMANAGED, Plan

NO_PLAN = Plan(study="", titles={}, mixes=(), controls=(), blocks=())
NO_FACTS, NO_FOLDER = MachineFacts(), StudyFolder(Path())


@dataclass(frozen=True)
class Results:
    """Everything that figures and the page are made of."""

    name: str
    effects: pd.DataFrame
    controls: pd.DataFrame
    carryover: pd.DataFrame
    blocks: pd.DataFrame
    windows: pd.DataFrame
    margins: pd.DataFrame = field(default_factory=lambda: frame([], MARGINS))
    system: pd.DataFrame = field(default_factory=lambda: frame([], SYSTEM))
    latency: pd.DataFrame = field(default_factory=lambda: frame([], LATENCY))
    resources: pd.DataFrame = field(default_factory=lambda: frame([], RESOURCES))
    sensitivity_curves: pd.DataFrame = field(default_factory=lambda: frame([], SENSITIVITY))
    knees: pd.DataFrame = field(default_factory=lambda: frame([], KNEES))
    pareto: pd.DataFrame = field(default_factory=lambda: frame([], PARETO))
    recommendations: pd.DataFrame = field(default_factory=lambda: frame([], RECOMMENDATIONS))
    machine: MachineFacts = NO_FACTS
    plan: Plan = NO_PLAN
    recorded: Sequence[Record] = ()  # the block.json of every block of the plan; of every block without a plan
    looks: tuple[Look, ...] = ()  # at the precision
    study: Study | None = None
    study_text: str = ""
    folder: StudyFolder = NO_FOLDER
    attribution: pd.DataFrame = field(default_factory=lambda: frame([], ATTRIBUTION))
    study_file: str = ""  # as it was named
    decisions: tuple[Decision, ...] = ()  # on the rounds of companies

    def block_table(
        self, name: str, only: Collection[tuple[str, int]] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One table of all blocks, or of these (company, number); blocks from before it was written have no rows.

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
        """The records of the plan's blocks that are measured: one that no plan names any more says nothing here."""
        return _record_files(self.folder, self.plan)

    @cached_property
    def records(self) -> list[BlockRecord]:
        """What each block says of itself."""
        return [BlockRecord(record) for record in self.recorded]

    @property
    def measured_records(self) -> list[BlockRecord]:
        """What the blocks say that measured anything."""
        return [record for record in self.records if record.measured]

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
        """Whether it was seen to find a loss that must be there."""
        return sensitivity(self.controls)

    @cached_property
    def masks(self) -> Stamp | None:
        """Whether the masks of its partitions were seen to do something; None where none was set."""
        return masks_stamp(set(self.effects["partition"]), self.platforms, {"way_masks": self.machine.way_masks})

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

    @property
    def watched(self) -> bool:
        """Whether the plan's machine tells what its last-level caches hold."""
        return self.plan.cache is not None and bool(self.plan.cache.events)

    def lead_effects(self, baseline: str, under_partitions: bool = False) -> pd.DataFrame:
        """The leads' rows against one baseline; without a partition, unless the others are asked for too."""
        rows = self.effects[(self.effects["role"] == "lead") & (self.effects["baseline"] == baseline)]
        return rows if under_partitions else rows[rows["partition"] == UNMANAGED]


def read_results(folder: Path, study_file: Path | None = None) -> Results:
    """Read results/<study>; what a study may lack (machine facts, a plan) is empty, a lacking table is an error."""
    here = StudyFolder(folder)
    tables = Tables(here, study_file)
    if not here.tables.is_dir():
        raise CastmatesError(
            f"{folder}: there is no folder 'tables' in it; give the results folder of an analysed study, or "
            f"{tables.make}."
        )
    plan = analysed(read_plan(here.plan_file), here) if here.plan_file.exists() else NO_PLAN
    text = _text(study_file) if study_file else ""
    return Results(
        name=plan.study or folder.resolve().name,
        effects=tables.needed("effects", EFFECTS),
        controls=tables.needed("controls", CONTROLS),
        carryover=tables.needed("carryover", CARRYOVER),
        blocks=tables.needed("blocks", BLOCKS),
        windows=tables.needed("windows", WINDOWS),
        margins=tables.later("margins", MARGINS),
        system=tables.later("system", SYSTEM),
        latency=tables.later("latency", LATENCY),
        resources=tables.later("resources", RESOURCES),
        sensitivity_curves=tables.later("sensitivity", SENSITIVITY),
        knees=tables.later("knees", KNEES),
        pareto=tables.later("pareto", PARETO),
        recommendations=tables.later("recommendations", RECOMMENDATIONS),
        machine=MachineFacts.model_validate(read_json(here.machine_file)),
        plan=plan,
        recorded=Records(_record_files(here, plan), read_record),
        looks=tuple(read_looks(plan, here)),
        study=read(Study, text, str(study_file)) if study_file else None,
        study_text=text,
        folder=here,
        attribution=tables.later("attribution", ATTRIBUTION),
        study_file=str(study_file or ""),
        decisions=tuple(read_decisions(here)),
    )


def _record_files(folder: StudyFolder, plan: Plan) -> list[Path]:
    if plan is NO_PLAN:
        return folder.record_files()
    return sorted(file for file in map(folder.record_file, plan.blocks) if file.is_file())


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [{str(column): value for column, value in row.items()} for row in table.to_dict("records")]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise CastmatesError(f"{file}: the study file cannot be read: {problem}.") from None
