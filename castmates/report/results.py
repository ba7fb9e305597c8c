"""Reads what a study left: its tables, its machine's facts, its plan and, where it is named, the study file itself.

`castmates.load` is `load` of this module: figures, the page and notebooks of others read results by the same class.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.effects.stamps import MODELLED, Stamp, as_one, masks_stamp, sensitivity, study_verdict
from castmates.errors import CastmatesError
from castmates.files import written_text
from castmates.report.figure_files import FigureFiles, drawn_figures, restricted, shown_part
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import MachineFacts
from castmates.results import launch_tables
from castmates.results.asked import looks_before
from castmates.results.bundle_names import RecordReader
from castmates.results.bundles import StudyLaunches
from castmates.results.columns.contract import Table
from castmates.results.columns.launch import LAUNCH_TABLES
from castmates.results.columns.registry import TABLES, table_of
from castmates.results.columns.study import frame
from castmates.results.find import find
from castmates.results.folder import StudyFolder
from castmates.results.known_nodes import facts_of_nodes
from castmates.results.looks import Look, read_adaptive_looks, read_decisions, read_looks
from castmates.results.looks import Look as AdaptiveLook
from castmates.results.plans import analysed, read_plan
from castmates.results.profiles import profile_records
from castmates.results.records import Record, Records, read_json
from castmates.results.tables import Tables, has
from castmates.study.capabilities import Capability
from castmates.study.model import Study
from castmates.study.node_classes import parts_of
from castmates.study.partitions.partitions import masked
from castmates.study.rdt_trial import Tried
from castmates.study.reading import read_keys
from castmates.study.rehearsing import PLATFORM as REHEARSED
from castmates.study.rounds import Decision
from castmates.study.scenes import service_workloads
from castmates.study.spec import UNMANAGED, Plan

NO_PLAN = Plan(study="", titles={}, mixes=(), controls=(), launches=())
NO_FACTS, NO_FOLDER = MachineFacts(), StudyFolder(Path())


@dataclass(frozen=True, repr=False)
class Results:
    """Everything that a study left; figures and the page are made of it, and `castmates.load` returns it.

    Each of its tables is an attribute, a pandas DataFrame that is read when it is asked for first; `columns("effects")`
    explains its columns.
    """

    name: str
    machine: MachineFacts = NO_FACTS
    plan: Plan = NO_PLAN
    recorded: Sequence[Record] = ()  # the launch.json of every launch of the plan; of every launch without a plan
    looks: tuple[Look, ...] = ()  # at the precision
    study: Study | None = None
    study_text: str = ""
    folder: StudyFolder = NO_FOLDER
    study_file: str = ""  # as it was named
    decisions: tuple[Decision, ...] = ()  # on the rounds of cohorts
    adaptive_looks: tuple[AdaptiveLook, ...] = ()  # of an adaptive study
    extended: tuple[int, ...] = ()  # numbers of launches at which its results were there when more were added
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # those that were read, or given
    strict: bool = False  # a table that the study does not ask for is an error, and not empty

    def __init__(self, name: str, **given: Any) -> None:  # noqa: ANN401 (fields)
        """`given`: fields, and tables by their names."""
        tables = {table: given.pop(table) for table in list(given) if table in TABLES}
        if unknown := given.keys() - {field.name for field in fields(self)}:
            raise TypeError(f"results have no {', '.join(sorted(unknown))}")
        vars(self).update(given, name=name, tables={**given.get("tables", {}), **tables})

    def __getattr__(self, name: str) -> pd.DataFrame:
        """A table of the study, or of all its launches."""
        table = TABLES.get(name)
        if table is None or not (table.rule or name in LAUNCH_TABLES):
            raise AttributeError(f"results have no '{name}'")
        if name not in self.tables:
            vars(self)["tables"][name] = self._read(table) if table.rule else self.launch_table(name)
        return self.tables[name]

    def _read(self, table: Table) -> pd.DataFrame:
        if self.has(table.name):
            return Tables(self.folder, Path(self.study_file) if self.study_file else None).read(table)
        if self.strict and table.asked:
            raise CastmatesError(
                f"{self.name} has no table '{table.name}', as the study does not ask for it: {table.asked.key} would."
            )
        return frame([], table)

    def asks(self, capability: Capability) -> bool:
        """Whether the study asks for something; without a plan, whether it may."""
        return not self.plan.launches or capability.asked(self.plan)

    def has(self, table: str) -> bool:
        """Whether the study asks for a table, or has one that was made on demand."""
        if not self.folder.path.parts:  # made without a folder
            return False
        asked, known = TABLES[table].asked, self.plan is not NO_PLAN
        if known and (asked is None or asked.asked(self.plan)):
            return True
        return self.folder.table_file(table).exists() and (has(asked, self.plan, self.folder) or not known)

    def __repr__(self) -> str:
        """Name the study; its tables would fill the screen."""
        return f"<results of {self.name}: {len(self.recorded)} launches in {self.folder}>"

    def launch_table(
        self, name: str, only: Collection[tuple[str, int]] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One table of all launches, or of these (cohort, number).

        All steps or samples of a large study do not fit into memory: take `launch_parts` for them.
        """
        if only is None:
            return self._measured.read(name, columns)
        wanted = {(cohort, str(number)) for cohort, number in only}
        chosen = [place for place in self.places if (place.parts[-2], place.parts[-1]) in wanted]
        return launch_tables.read(chosen, name, columns)

    def launch_parts(
        self, name: str, columns: Sequence[str] | None = None, categories: Sequence[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """One table of all launches, some whole launches at a time; the columns `categories` as categories."""
        return self._measured.parts(name, columns, categories)

    @cached_property
    def figures(self) -> Mapping[str, FigureFiles]:
        """The figures that were drawn, by name: their files, their source data, their captions."""
        return drawn_figures(self.folder)

    @staticmethod
    def columns(table: str) -> pd.DataFrame:
        """The columns of a table in their order: name, type and meaning, as the data contract has them."""
        return pd.DataFrame(table_of(table).columns, columns=["column", "type", "meaning"])

    def look_for_launches(self) -> None:
        """Find out where the launches' tables are: it takes a while where there are thousands of them."""
        self._measured.together()

    @cached_property
    def _measured(self) -> StudyLaunches:
        return StudyLaunches(self.folder, self.places)

    @cached_property
    def places(self) -> list[Path]:
        """The folders of the plan's launches that are measured."""
        return [file.parent for file in self.record_files]

    @cached_property
    def record_files(self) -> list[Path]:
        """The records of the plan's launches that are measured: one that no plan names any more is left out."""
        return _record_files(self.folder, self.plan)

    @cached_property
    def records(self) -> list[LaunchRecord]:
        """What each launch records of itself."""
        return [LaunchRecord(record) for record in self.recorded]

    @cached_property
    def profiled(self) -> list[dict[str, Any]]:
        """What each profile launch records of itself."""
        return profile_records(self.plan, self.folder)

    @property
    def measured_records(self) -> list[LaunchRecord]:
        """The records of the launches that measured anything."""
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
        named = [*self.effects["lead"], *self.controls["lead"], *self.launches["lead"]]
        return list(dict.fromkeys(named))

    @cached_property
    def only_traced(self) -> bool:
        """Whether steps were traced and nothing was measured: there are no losses, and nothing to trust or distrust."""
        measured = self.recorded and len(self.launches)
        return not measured and self.has("iterations") and len(self.iterations) > 0

    @cached_property
    def platforms(self) -> list[str]:
        """Where the numbers come from: measured, emulated, modelled, rehearsed."""
        tables = [self.iterations] if self.only_traced else [self.effects, self.controls, self.launches, self.windows]
        return sorted({name for table in tables for name in table["platform"].dropna().unique() if name})

    @cached_property
    def stamp(self) -> Stamp:
        """Whether the study can be trusted, in a word and in a sentence."""
        return study_verdict(self.controls)

    @cached_property
    def sensitivity_stamp(self) -> Stamp:
        """Whether it found a loss that must be there."""
        return sensitivity(self.controls)

    @cached_property
    def tried_rdt(self) -> Tried | None:
        """What was tried of masks and throttles on the machine that measured; of several none stands for all.

        None, too, where nothing measured it or a rehearsal did: a throttle did nothing there.
        """
        if self.plan.machines or REHEARSED in self.platforms or set(self.platforms) == {MODELLED}:
            return None
        return Tried.of(self.machine.rdt_trial)

    @cached_property
    def masks(self) -> Stamp | None:
        """Whether the masks of its partitions were seen to hold against a neighbour; None where none was set."""
        machine: Mapping[str, Any] = {"rdt_trial": self.machine.rdt_trial}
        if self.plan.machines:
            known, parts = read_json(self.folder.machine_file), parts_of(self.plan)
            machine = as_one([node for one in parts for node in facts_of_nodes(self.folder, one, self.windows, known)])
        return masks_stamp(masked(self.plan) & set(self.effects["partition"]), self.platforms, machine)

    @cached_property
    def against_alone(self) -> dict[str, list[dict[str, Any]]]:
        """Each lead's rows against alone, under partitions too."""
        by_lead: dict[str, list[dict[str, Any]]] = {}
        for row in records(self.lead_effects("alone", under_partitions=True)):
            by_lead.setdefault(row["lead"], []).append(row)
        return by_lead

    @property
    def partitioned(self) -> bool:
        """Whether anything was tried on the cache."""
        return bool((self.effects["partition"] != UNMANAGED).any())

    @cached_property
    def service_workloads(self) -> set[str]:
        """Workloads that are open-loop services."""
        return service_workloads(self.plan)

    def lead_effects(self, baseline: str, under_partitions: bool = False) -> pd.DataFrame:
        """The leads' rows against one baseline; without a partition, unless the others are asked for too."""
        rows = self.effects[(self.effects["role"] == "lead") & (self.effects["baseline"] == baseline)]
        return rows if under_partitions else rows[rows["partition"] == UNMANAGED]


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table."""
    # Several times as fast as `to_dict`, with the same values.
    names, columns = list(map(str, table.columns)), [_values(column) for _, column in table.items()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: "pd.Series[Any]") -> list[Any]:
    if isinstance(column.dtype, pd.Int64Dtype):
        return [None if value is pd.NA else value for value in column.to_numpy(dtype=object)]
    return list(column.to_numpy().tolist())


def load(study: Path | str) -> Results:
    """Open the results of a study, named by its folder results/<study> or by its file; tables are read when asked for.

    >>> import castmates
    >>> results = castmates.load("results/first-look")
    >>> results.effects[["mix", "baseline", "loss_pct", "verdict"]]
    """
    folder, file = find(Path(study))
    name = folder.path.resolve().name
    here = folder.path.resolve() == StudyFolder.of(name).path.resolve()
    opened = _opened(folder, file if here else None)  # elsewhere, the study of this name is another one
    return replace(opened, strict=True)


def read_results(folder: Path, study_file: Path | None = None, every: bool = True) -> Results:
    """Read results/<study> whole; what a study may lack (machine facts, a plan) is empty, a lacking table an error.

    Not `every` table: each is read when it is asked for, as where a study has traces alone.
    """
    results = _opened(StudyFolder(folder), study_file)
    for name, table in TABLES.items():
        if table.rule and every:
            getattr(results, name)
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
        study=read_keys(Study, text, str(study_file)) if study_file else None,
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
    return sorted(file for file in map(folder.record_file, plan.launches) if file.is_file())
