"""Where everything lies in results/<study>; no other module spells these names."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from castmates.errors import CastmatesError
from castmates.results.columns.launch import RECORD

if TYPE_CHECKING:  # jobs on other machines read this module, and no plan
    from castmates.study.spec import Launch, Plan

RESULTS = Path("results")
BUNDLES = "bundles"


@dataclass(frozen=True)
class StudyFolder:
    """The folder of one study."""

    path: Path

    @classmethod
    def of(cls, study: str) -> "StudyFolder":
        """The folder of the study of this name, in the project."""
        return cls(RESULTS / study)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def plan_file(self) -> Path:
        """What is measured and analysed; `results.plans` reads it."""
        return self.path / "plan.json"

    @property
    def machine_file(self) -> Path:
        """The facts of the machine."""
        return self.path / "machine.json"

    def node_file(self, node: str) -> Path:
        """The facts of a further machine that measured launches of the study, such as a node of a cluster."""
        return self.path / "machines" / f"{self._named(node)}.json"

    def node_files(self) -> list[Path]:
        """All of these files."""
        return sorted((self.path / "machines").glob("*.json"))

    @property
    def launches(self) -> Path:
        """The folder of all launches: <cohort>/<number>."""
        return self.path / "launches"

    def launch(self, path: str) -> Path:
        """The folder of the launch with this `Launch.path`."""
        cohort, _, number = path.rpartition("/")
        return self.launches / self._named(cohort) / self._named(number)

    @property
    def profiles(self) -> Path:
        """The folder of all profile launches: <cohort>/<number>."""
        return self.path / "profiles"

    def profile(self, path: str) -> Path:
        """The folder of the profile launch with this `Launch.path`."""
        cohort, _, number = path.rpartition("/")
        return self.profiles / self._named(cohort) / self._named(number)

    @property
    def traces(self) -> Path:
        """The folder of all traces: <mix>, or <mix>@<partition>."""
        return self.path / "traces"

    def trace(self, name: str) -> Path:
        """The folder of the trace of this name."""
        return self.traces / self._named(name)

    def record_file(self, launch: "Launch") -> Path:
        """The record of a launch, written last, so that a launch without it is not measured."""
        return self.launch(launch.path) / RECORD

    def record_files(self, cohort: str = "*") -> list[Path]:
        """The records of all launches that are measured, planned or not; or of one cohort."""
        return sorted(file for file in self.launches.glob(f"{cohort}/*/{RECORD}") if file.parent.name.isdecimal())

    def measured(self, plan: "Plan") -> "Plan":
        """The plan with those of its launches that are measured."""
        from castmates.study.rounds import part_of

        for cohort in {launch.cohort.id for launch in plan.launches}:
            self._named(cohort)
        return part_of(plan, self.measured_paths())

    def measured_paths(self) -> list[str]:
        """The paths of all launches that are measured, planned or not, in order of cohort and number as texts."""
        return [
            f"{cohort}/{number}"
            for cohort in _names(self.launches)
            for number in _names(self.launches / cohort)
            if number.isdecimal() and os.path.exists(f"{self.launches}/{cohort}/{number}/{RECORD}")  # noqa: PTH110 (thousands of them)
        ]

    def analysed_files(self) -> list[Path]:
        """What an analysis rests on and leaves: facts, plan, looks, records and tables, without those of launches.

        When sessions begin is no part of it.
        """
        facts = ("*.json", "machines/*.json", "looks/*.json", "rounds/*.json")
        kinds = (*facts, f"launches/*/*/{RECORD}", "tables/*.parquet")
        files = (file for kind in kinds for file in self.path.glob(kind))
        return sorted(file for file in files if not file.name.startswith(".") and file != self.sessions_file)

    def places(self, plan: "Plan") -> list[Path]:
        """The folders of the plan's launches."""
        return [self.launch(launch.path) for launch in plan.launches]

    def mix_file(self, name: str) -> Path:
        """A mix, resolved to CPUs, partitions and command lines."""
        return self.path / "mixes" / f"{self._named(name)}.json"

    def look_file(self, number: int) -> Path:
        """What a look at the precision decided; `results.looks` reads it."""
        return self.path / "looks" / f"{number}.json"

    def rounds_file(self, cohort: str) -> Path:
        """What was decided on the rounds of a cohort; `results.rounds` reads it."""
        return self.path / "rounds" / f"{self._named(cohort)}.json"

    def bundle(self, name: str) -> Path:
        """The folder of the tables of some launches, gathered; `results.bundles` reads them."""
        return self.path / BUNDLES / self._named(name)

    @property
    def tables(self) -> Path:
        """The folder of the study's tables."""
        return self.path / "tables"

    def table_file(self, name: str, suffix: str = "parquet") -> Path:
        """A table of the study."""
        return self.tables / f"{name}.{suffix}"

    @property
    def figures(self) -> Path:
        """The folder of the figures and their texts."""
        return self.path / "figures"

    @property
    def answer_file(self) -> Path:
        """What came out, in a few lines for a terminal; beside the report, written with it."""
        return self.path / "report" / "answer.txt"

    @property
    def kept_answer_file(self) -> Path:
        """The same with all that `castmates show` prints, and of what it was made; `report.answer.kept` reads it."""
        return self.path / "report" / "answer.json"

    @property
    def asked_file(self) -> Path:
        """How many launches were asked for on the command line; `results.asked` reads it."""
        return self.path / "asked.json"

    @property
    def sessions_file(self) -> Path:
        """When the first session of a study began whose launches are spread; `pipeline.sessions` reads it."""
        return self.path / "sessions.json"

    @property
    def page_file(self) -> Path:
        """The report."""
        return self.path / "report" / "index.html"

    @property
    def paper(self) -> Path:
        """The folder that `castmates paper` writes."""
        return self.path / "paper"

    @property
    def pilot_file(self) -> Path:
        """What a pilot proposes, in the pilot's own folder; `results.pilots` reads it."""
        return self.path / "pilot.json"

    @property
    def for_jobs(self) -> Path:
        """What a sweep leaves for its jobs on other machines; `results.for_jobs` reads it."""
        return self.path / ".jobs"

    @property
    def lock_file(self) -> Path:
        """The file that a sweep locks."""
        return self.path / ".sweep.lock"

    @property
    def torn_file(self) -> Path:
        """Which launches have lost a table since they were measured; `results.torn` writes it."""
        return self.path / ".torn.json"

    @property
    def place(self) -> Path:
        """The folder that `castmates advice --place` writes: who should share a cache with whom."""
        return self.path / "place"

    def confirming_file(self, name: str) -> Path:
        """The study of this name that `castmates sweep --confirm` wrote; `results.confirming` finds all of them."""
        return self.path / "confirm" / f"{self._named(name)}.yaml"

    def trial(self, name: str) -> Path:
        """What `castmates advice --try` wrote of the trial of this name; `results.trials` reads it."""
        return self.path / "try" / self._named(name)

    def trial_study_file(self, name: str) -> Path:
        """The study of a trial; its workloads lie beside it."""
        return self.trial(name) / "study.yaml"

    @property
    def replay(self) -> Path:
        """What `castmates sweep --replay` wrote, in the folder of a replay: its study, and how it compares."""
        return self.path / "replay"

    @property
    def replay_study_file(self) -> Path:
        """The study of a replay; its workloads lie beside it."""
        return self.replay / "study.yaml"

    @property
    def replay_origin_file(self) -> Path:
        """What a replay measures again."""
        return self.replay / "published.json"

    @property
    def replay_workloads_file(self) -> Path:
        """The published workloads, as the catalogue beside the study of a replay."""
        return self.replay / "workloads" / "published.yaml"

    @property
    def rehearsal_study_file(self) -> Path:
        """The study that `castmates sweep --rehearse` wrote, in the folder of its results."""
        return self.path / "rehearsal" / "study.yaml"

    @property
    def tensorboard(self) -> Path:
        """The folder of event files that `castmates show --format tensorboard` writes."""
        return self.path / "tensorboard"

    def tensorboard_run(self, names: Sequence[str]) -> Path:
        """The folder of a run in it: a scene of a cohort."""
        return self.tensorboard.joinpath(*map(self._named, names))

    def graph_file(self, name: str, suffix: str) -> Path:
        """The graph of a lead, or of a mix, that `castmates trace graph` writes."""
        return self.path / "graphs" / f"{self._named(name)}.{suffix}"

    def _named(self, name: str) -> str:
        """Check a name that results bring along: one with a slash would lead out of their folder."""
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise CastmatesError(
                f"{self.path}: these results have the name {name!r}, which is no name of a file; they were not written "
                "by Castmates, so do not use them."
            )
        return name


def _names(folder: Path) -> list[str]:
    """What is in a folder, by name; nothing where it is not there."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 (thousands of them)
    except OSError:
        return []
