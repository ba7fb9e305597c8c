"""The sweep as the process sees it that plans it, and what that leaves for jobs on other machines."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType

import castmates
from castmates import plugins, project
from castmates.errors import CastmatesError
from castmates.linux.ownership import refuse_strangers
from castmates.project import Project
from castmates.results import for_jobs, known_nodes, profiles, traces
from castmates.results.bundles import Found as FoundLaunches
from castmates.results.folder import StudyFolder
from castmates.results.for_jobs import Found, LaunchTerms, Terms
from castmates.results.looks import decided_rounds
from castmates.results.profiles import PROFILES
from castmates.results.records import remember_torn
from castmates.results.tables import tables_of
from castmates.results.traces import TRACES
from castmates.study import schedule
from castmates.study.machine_keys import MachineClass, SlurmKeys
from castmates.study.plan_text import Fingerprints
from castmates.study.profile_launches import identity_of
from castmates.study.rounds import FIRST_LAUNCHES, needed, without_decisions
from castmates.study.spec import PROTOCOL, Launch, Plan
from castmates.study.trace_launches import identity_of as trace_identity
from castmates.study.trace_launches import trace_name
from castmates.workloads import environments, inputs

FiguresOf = Callable[[Plan, StudyFolder], list[str]]


class PlannedSweep:
    """A project with its plan, as the rules need them."""

    def __init__(
        self, loaded: Project, plan: Plan, cache: Path, figures_of: FiguresOf, there: FoundLaunches | None = None
    ) -> None:
        self._figures_of, self._given = figures_of, there
        self.project, self.plan, self.cache = loaded, plan, cache
        self.paths: Mapping[str, Launch] = {launch.path: launch for launch in plan.launches}
        self.profiles: Mapping[str, Launch] = {f"{PROFILES}{launch.path}": launch for launch in plan.profiles}
        self.traces: Mapping[str, Launch] = {f"{TRACES}{trace_name(launch)}": launch for launch in plan.traces}
        self.undecided = any(launch.design.decided for launch in plan.launches)
        # What has to be the same for a launch to count as measured.
        self._undecided = {launch.path: launch for launch in without_decisions(plan).launches}
        self._fingerprints = Fingerprints()
        self._found: Found | None = None
        self._is_left = False
        self._cluster = Cluster()

    @classmethod
    def of(cls, study_file: Path, launches: object, cache: Path, figures_of: FiguresOf) -> "PlannedSweep":
        """Read the project and plan; which figures a study has is decided by `figures_of`."""
        plugins.refuse_broken()
        refuse_strangers(study_file)  # for whoever starts Snakemake by hand
        loaded = project.load(study_file, launches)
        there = loaded.found()
        return cls(loaded, loaded.plan(there), cache, figures_of, there)

    @cached_property
    def terms(self) -> Terms:
        """What the rules need to know of the study as a whole."""
        study = self.project.study
        return Terms(
            study=study.name,
            study_file=str(self.project.study_file),
            study_text=self.project.fingerprint,
            plan=self._fingerprints.of_plan(without_decisions(self.plan)),
            modelled=self.project.modelled,
            cache=str(self.cache),
            mixes=list(dict.fromkeys(mix.name for mix in self.plan.mixes)),
            tables=tables_of(self.plan, self.project.results),
            figures=self._figures_of(self.plan, self.project.results),
            precision=study.budget.precision,
            margin=study.margin,
            lead_loss=study.recommend.lead_loss,
            trials=self.project.trials(self.cache),
            protocol=PROTOCOL,
            adaptive=study.budget.adaptive,
            profiles=[launch.path for launch in self.plan.profiles],
            traces=[trace_name(launch) for launch in self.plan.traces],
        )

    @cached_property
    def measured(self) -> frozenset[str]:
        """The launches that were measured when the sweep began."""
        return frozenset(launch.path for launch in self.project.results.measured(self.plan).launches)

    @cached_property
    def decided(self) -> Mapping[str, int]:
        """The numbers of rounds that were decided when the sweep began, by cohort."""
        return decided_rounds(self.project.results)

    @cached_property
    def _there(self) -> FoundLaunches:
        """What lay in the folders of the launches when the sweep began."""
        return self._given or self.project.found()

    @cached_property
    def torn(self) -> frozenset[str]:
        """Those of the measured launches whose files cannot be used."""
        return self.measured.intersection(self._there.torn)

    @cached_property
    def torn_note(self) -> str:
        """The note of which launches are torn, "" without any.

        The rules ask while they are read: of files that come later Snakemake believes that they are not there.
        """
        return str(remember_torn(self.project.results, self.torn)) if self.torn else ""

    def waits_for(self, path: str, files: Sequence[str]) -> list[str]:
        """Those of the files that a launch needs which Snakemake is to know of: one that is over needs none that lack.

        A file that has to be made first is one that changes to Snakemake, `ancient` or not: it would make the launch
        again.
        """
        lacking = [file for file in files if not Path(file).exists()]
        return [file for file in files if file not in lacking] if lacking and path in self._over else list(files)

    @cached_property
    def _over(self) -> frozenset[str]:
        """The launches that were over when the sweep began, as they are planned now: by their records."""
        folder = self.project.results
        measured = self.plan.model_copy(update={"launches": tuple(self._there.measured)})
        return frozenset(
            [
                *(launch.path for launch in without_decisions(measured).launches if self._is_planned(launch)),
                *(f"{PROFILES}{path}" for path in profiles.measured_profiles(self.plan, folder)),
                *(
                    path
                    for path, launch in self.traces.items()
                    if traces.read_record(folder, trace_name(launch)).get("identity") == trace_identity(launch)
                ),
            ]
        )

    def _is_planned(self, launch: Launch) -> bool:
        ours = self._undecided.get(launch.path)
        return ours is not None and self._fingerprints.of_launch(ours) == self._fingerprints.of_launch(launch)

    # Found once: Snakemake asks again whenever a job ends, and an interrupt there shows a traceback.
    @cache  # noqa: B019 (a process has one sweep)
    def launch(self, path: str) -> LaunchTerms:
        """What is needed to know of a launch of the plan, of a profile launch, or of a trace."""
        if path in self.profiles:
            return self._terms_of(self.profiles[path], identity_of(self.profiles[path]))
        if path in self.traces:
            return self._terms_of(self.traces[path], trace_identity(self.traces[path]))
        launch = self.paths[path]
        return LaunchTerms(
            spec=self._fingerprints.of_launch(self._undecided[path]),
            priority=schedule.launch_priority(launch.seed, launch.number),
            waits=launch.design.decided and path not in self.measured,
            environments=self._environments(launch),
            inputs=self._inputs(launch),
        )

    def _terms_of(self, launch: Launch, identity: str) -> LaunchTerms:
        spec = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return LaunchTerms(spec, 0, False, self._environments(launch), self._inputs(launch))

    def _environments(self, launch: Launch) -> list[str]:
        """The files that are there when the environments of a launch are built."""
        cohort = launch.cohort
        built = {(environments.NATIVE, cohort.native_key)}
        built |= {(each.environment, each.environment_key or "") for each in cohort.members if each.environment}
        return [] if self.project.modelled else self._files(environments, built)

    def _inputs(self, launch: Launch) -> list[str]:
        """The same of its data sets."""
        made = {(each.inputs, each.inputs_key or "") for each in launch.cohort.members if each.inputs}
        return self._files(inputs, made)

    def first_launches(self, cohort: str) -> list[str]:
        """The launches of a cohort that decide how many rounds its others have; none where that is decided."""
        if cohort in self.decided:
            return []
        return [f"{cohort}/{number + 1}" for number in range(FIRST_LAUNCHES)]

    def needed(self, decisions: Sequence[Sequence[str]]) -> list[str]:
        """The launches that are needed after these decisions."""
        return needed(self.plan, decisions)

    def found(self, decisions: Iterable[Collection[str]]) -> Sequence[str]:
        """The launches of which the study consists by its decisions; jobs learn it at once."""
        found = self._after(tuple(map(frozenset, decisions)))
        if self._found != found:
            self._found = found
            if self._is_left:
                for_jobs.write_found(self.terms, found)
        return found.launches

    @cache  # noqa: B019
    def _after(self, decisions: tuple[frozenset[str], ...]) -> Found:
        """Found once for all rules that ask: there may be tens of thousands."""
        wanted = {*needed(self.plan, decisions), *self.measured}
        return Found(tuple(path for path in self.paths if path in wanted), len(decisions))

    def missing(self, launches: Iterable[str]) -> list[str]:
        """Those of the launches that were not measured when the sweep began."""
        return [path for path in launches if path not in self.measured]

    @property
    def classes(self) -> Sequence[MachineClass]:
        """The classes of nodes that the study names."""
        return list(self.project.study.machines.values())

    def slurm_keys(self, path: str) -> SlurmKeys:
        """How Slurm finds nodes for a launch."""
        machine = self.project.study.machines.get(self._class_of(path))
        return machine.slurm if machine else SlurmKeys()

    def slurm_options(self, path: str, attempt: int, keys: SlurmKeys, left_out: Iterable[str]) -> str:
        """What an attempt at a launch asks of Slurm besides constraint and partition, which `keys` has as in effect."""
        folder, machine = self.project.results, self._class_of(path)
        refused = [*left_out, *(known_nodes.refused_by(folder, machine) if machine else [])]
        failed = known_nodes.begun_on(folder, path)[1 - attempt :] if attempt > 1 else []
        return self._cluster.options(keys, refused, failed)

    def _class_of(self, path: str) -> str:
        """The class of nodes of a launch, of a profile launch, or of a trace."""
        return (self.profiles.get(path) or self.traces.get(path) or self.paths[path]).cohort.machine

    def leave_for_jobs(self) -> None:
        """Leave for jobs on other machines what they need, from now on."""
        for name, machine in self.project.study.machines.items():
            self._cluster.refuse_unknown(name, machine.slurm.nodelist)
        known_nodes.forget(self.project.results)
        for_jobs.write_sweep(
            self.terms, {path: self.launch(path) for path in (*self.paths, *self.profiles, *self.traces)}
        )
        if self._found is not None:
            for_jobs.write_found(self.terms, self._found)
        self._is_left = True

    def _files(self, kind: ModuleType, named: set[tuple[str, str]]) -> list[str]:
        """What is there when these environments are built, or these data sets are made."""
        return [str(kind.ready_file(kind.place_of(name, key, self.cache))) for name, key in sorted(named)]


# What a launch asks of Slurm: a node for itself, of its class, and another one where an attempt failed.

USABLE = "--states=idle,mixed,allocated,completing"
PAUSE = 60.0  # seconds until a Slurm that did not answer is asked again: there may be thousands of launches
Nodes = Callable[..., Collection[str]]


def nodes(*options: str) -> set[str]:
    """The nodes that `sinfo` shows with these options, with partition and features; none where it does not answer."""
    words = ["sinfo", "--noheader", "--Node", "--format=%N %P %f", *(option for option in options if option)]
    try:
        lines = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return set()
    return set(lines)


class Cluster:
    """Slurm as a process that submits jobs sees it."""

    def __init__(self, ask: Nodes = nodes, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._outside: dict[str, set[str]] = {}  # by list of nodes
        self._ask_again = clock()

    def options(self, keys: SlurmKeys, refused: Collection[str] = (), failed: Collection[str] = ()) -> str:
        """Options of sbatch; constraint and partition are not among them, since Snakemake's plugin has words for both.

        `keys` has them as they are in effect. `refused` are nodes that are never right: of another class, or left out.
        The job stays away from those on which it `failed` as long as there are others.
        """
        excluded = self._others_than(keys.nodelist) | set(refused)
        if failed and self._usable(keys) - excluded - set(failed):
            excluded |= set(failed)
        return " ".join(["--exclusive", *([f"--exclude={','.join(sorted(excluded))}"] if excluded else [])])

    def refuse_unknown(self, machine: str, nodelist: str | None) -> None:
        """Refuse the list of a class where the cluster has none of its nodes."""
        if nodelist and not self._named(f"--nodes={nodelist}") and self._named():
            raise CastmatesError(
                f"'machines.{machine}.slurm.nodelist' is '{nodelist}', and `sinfo` shows none of these nodes; write "
                "names that `sinfo --Node` shows."
            )

    def _others_than(self, wanted: str | None) -> set[str]:
        """The nodes that are not in a list: with --nodelist a job would want all of them at once."""
        if not wanted:
            return set()
        if wanted not in self._outside and self._clock() >= self._ask_again:
            listed, every = self._named(f"--nodes={wanted}"), self._named()
            if listed and every:
                self._outside[wanted] = every - listed
            else:
                self._ask_again = self._clock() + PAUSE
        return self._outside.get(wanted, set())

    def _usable(self, keys: SlurmKeys) -> set[str]:
        """The nodes that could run it now, as far as names of features show; none with an expression of several."""
        if keys.partition:
            return self._named(USABLE, f"--partition={keys.partition}", feature=keys.constraint)
        return self._named(USABLE, feature=keys.constraint, default=True)

    def _named(self, *options: str, feature: str | None = None, default: bool = False) -> set[str]:
        """The names of nodes: all, those with a feature, those of the default partition if there is one."""
        rows = [line.split(maxsplit=2) for line in self._ask(*options)]
        if default:  # sinfo marks it
            rows = [row for row in rows if row[1].endswith("*")] or rows
        return {node for node, _, features in rows if feature in (None, *features.split(","))}


def in_effect(keys: SlurmKeys, of_launches: Mapping[str, object], of_jobs: Mapping[str, object]) -> SlurmKeys:
    """What Slurm gets: the profile's words for launches, else those of the class, else the profile's for all jobs."""
    update = {
        key: _word(of_launches.get(name)) or getattr(keys, key) or _word(of_jobs.get(name))
        for key, name in {"constraint": "constraint", "partition": "slurm_partition"}.items()
    }
    return keys.model_copy(update=update)


def _word(value: object) -> str | None:
    """A word of a profile: Snakemake keeps it as it was written, maybe in quotes."""
    raw = getattr(value, "raw", value)
    return str(raw).strip("'\"") if raw is not None else None


# What the jobs of a sweep need of the process that starts them.


def let_jobs_find_us() -> None:
    """Let jobs find the interpreter that runs the workflow, and this package, activated and installed or not."""
    root = str(Path(castmates.__file__).resolve().parents[1])
    for variable, place, usual in (("PATH", str(Path(sys.executable).parent), os.defpath), ("PYTHONPATH", root, "")):
        os.environ[variable] = os.pathsep.join(filter(None, [place, os.environ.get(variable, usual)]))


def use_cache(folder: str) -> None:
    """Let the scripts of a job use the cache of the process that planned, whatever the node's environment says."""
    os.environ["CASTMATES_CACHE"] = folder
