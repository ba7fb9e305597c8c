"""Reads what a study left: its tables, its machine's facts, its plan and, where it is named, the study file itself."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.effects.mask_stamp import masks_stamp
from castmates.analysis.effects.stamps import Stamp, sensitivity, study_verdict
from castmates.errors import CastmatesError
from castmates.report.text.design import places
from castmates.results import block_tables
from castmates.results.bundles import StudyBlocks
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
    WINDOWS,
    frame,
)
from castmates.results.folder import StudyFolder
from castmates.results.records import Record, Records, read_json
from castmates.results.tables import Tables
from castmates.study.looks import until_nobody_goes_on
from castmates.study.model import Study
from castmates.study.plan_text import unfolded
from castmates.study.reading import read
from castmates.study.spec import UNMANAGED


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
    machine: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    records: Sequence[Record] = ()  # the block.json of every block of the plan; of every block without a plan
    looks: tuple[Mapping[str, Any], ...] = ()  # what the looks at the precision left
    study: Study | None = None
    study_text: str = ""
    folder: Path = Path()  # results/<study>
    attribution: pd.DataFrame = field(default_factory=lambda: frame([], ATTRIBUTION))
    study_file: str = ""  # as it was named

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
        return StudyBlocks(StudyFolder(self.folder), self.places)

    @cached_property
    def places(self) -> list[Path]:
        """The folders of the plan's blocks that are measured."""
        return [file.parent for file in _block_files(self.folder, self.plan)]

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
        return masks_stamp(set(self.effects["partition"]), self.platforms, self.machine)

    @cached_property
    def against_solo(self) -> dict[str, list[dict[str, Any]]]:
        """Each lead's rows against solo, under partitions too."""
        found: dict[str, list[dict[str, Any]]] = {}
        for row in records(self.lead_effects("solo", under_partitions=True)):
            found.setdefault(row["lead"], []).append(row)
        return found

    @property
    def partitioned(self) -> bool:
        """Whether anything was tried on the cache."""
        return bool((self.effects["partition"] != UNMANAGED).any())

    @property
    def phases(self) -> bool:
        """Whether some lead is to report the phases of its steps."""
        companies = [block.get("company") or {} for block in self.plan.get("blocks") or ()]
        return any(member.get("phases") for company in companies for member in (company.get("members") or ())[:1])

    @property
    def watched(self) -> bool:
        """Whether the plan's machine tells what its last-level caches hold."""
        return bool((self.plan.get("cache") or {}).get("events"))

    def lead_effects(self, baseline: str, under_partitions: bool = False) -> pd.DataFrame:
        """The leads' rows against one baseline; without a partition, unless the others are asked for too."""
        rows = self.effects[(self.effects["role"] == "lead") & (self.effects["baseline"] == baseline)]
        return rows if under_partitions else rows[rows["partition"] == UNMANAGED]


def read_results(folder: Path, study_file: Path | None = None) -> Results:
    """Read results/<study>; what a study may lack (machine facts, a plan) is empty, a lacking table is an error."""
    tables = Tables(StudyFolder(folder), study_file)
    if not (folder / "tables").is_dir():
        raise CastmatesError(
            f"{folder}: there is no folder 'tables' in it; give the results folder of an analysed study, or "
            f"{tables.make}."
        )
    plan = _measured_part(folder, _plan(folder / "plan.json"))
    text = _text(study_file) if study_file else ""
    return Results(
        name=str(plan.get("study") or folder.resolve().name),
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
        machine=read_json(folder / "machine.json"),
        plan=plan,
        records=Records(_block_files(folder, plan), read_json),
        looks=tuple(_looks(folder, plan)),
        study=read(Study, text, str(study_file)) if study_file else None,
        study_text=text,
        folder=folder,
        attribution=tables.later("attribution", ATTRIBUTION),
        study_file=str(study_file or ""),
    )


def _block_files(folder: Path, plan: Mapping[str, Any]) -> list[Path]:
    """The plan's blocks as far as they are measured: a block that no plan names any more says nothing here."""
    if "blocks" not in plan:
        return sorted(folder.glob("blocks/*/*/block.json"))
    planned = (folder / "blocks" / place / "block.json" for place in dict.fromkeys(places(plan)))
    return sorted(file for file in planned if file.is_file())


def _looks(folder: Path, plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    numbers = range(1, len(plan.get("looks") or ()) + 1)
    found = (read_json(folder / "looks" / f"{number}.json") for number in numbers)
    return until_nobody_goes_on(takewhile(bool, found))


def _measured_part(folder: Path, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """The plan without the blocks that its looks at the precision left out."""
    if not plan.get("looks"):
        return plan
    blocks = [
        block
        for block in plan["blocks"]
        if (folder / "blocks" / places({"blocks": [block]})[0] / "block.json").is_file()
    ]
    return {**plan, "blocks": blocks}


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [{str(column): value for column, value in row.items()} for row in table.to_dict("records")]


def _plan(file: Path) -> dict[str, Any]:
    content = read_json(file)
    try:
        return unfolded(content)
    except ValueError as problem:
        raise CastmatesError(f"{file}: this is not a plan ({problem}); remove it and make it again.") from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise CastmatesError(f"{file}: the study file cannot be read: {problem}.") from None
