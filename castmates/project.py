"""Reads a project's files, the study and the catalogue, and makes the study's plan of them."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.files import cache_folder, written_text
from castmates.machine import trial_records
from castmates.machine.knobs import refusal
from castmates.machine.probes import no_quota, usable_memory
from castmates.machine.topology import Topology, read_topology
from castmates.machine.topology import layout_of as layout_of
from castmates.rdt.choose import OURS, Elsewhere, captured_machine, driver
from castmates.rdt.pqos.classes import expected
from castmates.rdt.resctrl.capabilities import read_cache, ways_of_others
from castmates.results.asked import asked_launches
from castmates.results.bundles import Found, found_launches
from castmates.results.finding_rules import check_own
from castmates.results.folder import StudyFolder
from castmates.results.looks import decided_rounds
from castmates.results.named import default_study
from castmates.results.plans import remembered_cache, remembered_draw, with_rounds_of_pilot
from castmates.study import catalogue, mixes, modelled, node_classes, planning, rehearsing, scenes
from castmates.study.cache import Cache
from castmates.study.changed_design import changed_words
from castmates.study.machine_keys import difference
from castmates.study.made_mixes import MadeMixes as MadeMixes
from castmates.study.made_mixes import make_mixes, variants_of, with_made, with_variants
from castmates.study.memory_peak import Peak, at_peak, with_peak
from castmates.study.mitigations import wanted_mixes
from castmates.study.model import Catalogue, Study, Workload
from castmates.study.partitions import partitions
from castmates.study.placement.layout import Layout
from castmates.study.rdt_trial import Tried, with_measured_steps
from castmates.study.reading import line_of, read_keys
from castmates.study.remarks import MIXES, Remark
from castmates.study.rounds import checked_launches, with_launches
from castmates.study.scenes import Room
from castmates.study.spec import Launch, NodeClass, Plan, Prepared
from castmates.study.trace_launches import refuse_unknown_mixes
from castmates.workloads import environments, inputs
from castmates.workloads.native import build as native
from castmates.workloads.suites.expand import expanded

ENVIRONMENTS = shipped.environments()  # found once: the folder does not change after the start
PLACEBO = "spin"
NOTHING_MADE = MadeMixes()
Made = TypeVar("Made")


class _OnDemand(dict[str, Made]):
    """What is made when it is asked for first: a study names few of the catalogue's workloads."""

    def __init__(self, make: Callable[[str], Made]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Made:
        made = self[name] = self._make(name)
        return made


@dataclass(frozen=True)
class Project:
    """A study with everything it refers to."""

    study_file: Path
    study: Study
    workloads: dict[str, Workload]
    fingerprint: str  # of the study's text: the report shows it
    elsewhere: Elsewhere | None = None  # instead of this machine
    machine: str = ""  # the class of nodes, in a project of one class
    made: MadeMixes = NOTHING_MADE  # of the mixes, those that are not written out
    replaced: tuple[Remark, ...] = ()  # what the folder beside the study has in place of what ships with Castmates

    @property
    def results(self) -> StudyFolder:
        """The folder of this study's results; for another machine one that is not there."""
        folder = StudyFolder.of(self.study.name)
        return StudyFolder(folder.path / "elsewhere") if self.elsewhere and not self.machine else folder

    def found(self) -> Found:
        """What lies in the folders of its launches now."""
        return found_launches(self.results, self.study.name)

    def plan(self, found: Found | None = None) -> Plan:
        """What the study consists of, measured launches included: those `found`, or what lies there now."""
        measured, made = (found or self.found()).measured, self.made
        if why := rehearsing.mixed(self.rehearsed, measured):
            raise CastmatesError(f"{self.study_file}: {why.format(self.results)}")
        plan = self._whole_plan(measured)
        left_out = [each.mix for each in plan.left_out]
        refuse_unknown_mixes(self.study, plan.mixes, str(self.study_file), left_out)
        changed = [Remark(about=MIXES, text=text) for text in changed_words(self.study, plan.launches)]
        notes = (*self.replaced, *made.notes, *changed, *plan.notes)
        changes = {"drawn": made.drawn, "sets": made.sets, "notes": notes, "variants": variants_of(self.study)}
        return plan.model_copy(update=changes)

    def _whole_plan(self, measured: Sequence[Launch]) -> Plan:
        if not self.study.machines:
            return self._plan(measured)
        _refuse_twins(self)
        parts = [
            (each.node_class, node_classes.plan_of_class(each.machine, partial(each._plan, measured)))
            for each in self.by_class
        ]
        if why := node_classes.nowhere([plan for _, plan in parts]):
            raise CastmatesError(f"{self.study_file}: {why}")
        return node_classes.merged(parts)

    @cached_property
    def by_class(self) -> "list[Project]":
        """The project on each class of nodes; itself alone where the study has no classes."""
        return [_on_class(self, name) for name in self.study.machines] or [self]

    @property
    def node_class(self) -> NodeClass:
        """What a node must have to be of the class of this project."""
        captured = self.elsewhere
        return NodeClass(
            name=self.machine,
            capture=str(captured.file) if captured else "",
            facts=captured.facts if captured else None,
        )

    def _plan(self, measured: Sequence[Launch]) -> Plan:
        cache = self._planned_cache()
        cast = self.cast(self.layout(), cache)
        titles = {name: workload.title for name, workload in self.workloads.items()}
        native_key = "" if self.modelled else self._keys[environments.NATIVE]
        needs = {name: workload.memory_bytes for name, workload in self.workloads.items()} | dict(cast.memory)
        room = Room(self._memory(), needs, cache.groups if cache else None, self._cache_parts())
        if self.machine:
            cast = node_classes.as_far_as_it_fits(cast, room)
        study = self.study if self.elsewhere else with_rounds_of_pilot(self.study, self.study_file)
        decided = decided_rounds(self.results)
        return planning.extend(study, cast, titles, native_key, measured, room, decided)

    @property
    def rehearsed(self) -> str:
        """The machine that is rehearsed here; "" where nothing is."""
        return rehearsing.machine_of(self.study.cache.driver)

    @property
    def modelled(self) -> bool:
        """Whether nothing is started, and rates come from a model."""
        return self.study.platform == "modelled"

    def trials(self, cache: Path) -> dict[str, str]:
        """Short names of the records that results are shown with; none where nothing is started."""
        if self.modelled:
            return dict.fromkeys(trial_records.SHOWN, "")
        machine = self.results.machine_file
        return {fact: trial_records.known(cache, machine, fact=fact) for fact in trial_records.SHOWN}

    def layout(self) -> Layout:
        """The CPUs of the machine, or of the modelled one."""
        return modelled.layout_of(self.study.model) if self.modelled else layout_of(self._topology())

    def shareable_cache(self) -> Cache | None:
        """What can be shared out of the last-level cache there now; None where nothing can."""
        if self.modelled:
            return modelled.cache_of(self.study.model)
        named = self.study.cache.driver
        if named not in OURS:
            return driver(named).shareable()
        if named == "pqos":
            return expected(self._topology())
        if self.elsewhere:
            return self.elsewhere.cache
        return with_peak(with_measured_steps(read_cache(), self._tried), self._peak, self.layout())

    @property
    def _tried(self) -> Tried | None:
        return Tried.of(trial_records.RDT.read(cache_folder()))

    @cached_property
    def _peak(self) -> Peak | None:
        """What memory was measured to give; None of a machine on which nothing can be measured."""
        return None if self.modelled or self.elsewhere else Peak.of(trial_records.MEMORY_PEAK.read(cache_folder()))

    def ways_of_others(self) -> dict[str, int]:
        """Which ways groups of other programs have on this machine now, by their names."""
        return {} if self.modelled or self.elsewhere or self.rehearsed else ways_of_others()

    def _topology(self) -> Topology:
        return self.elsewhere.topology if self.elsewhere else read_topology()

    def _memory(self) -> int | None:
        """The memory that members may use; None where nothing is started, or it is not known."""
        if self.modelled:
            return None
        return self.elsewhere.memory_bytes if self.elsewhere else usable_memory()

    def _cache_parts(self) -> list[scenes.CachePart]:
        """What is emptied between partitions, as far as it is known how large it is."""
        if self.modelled or self.rehearsed:
            return []
        parts = self._topology().cache_parts()
        return [scenes.CachePart(part.llc, part.node, frozenset(part.cpus), part.bytes) for part in parts if part.bytes]

    def _planned_cache(self) -> Cache | None:
        """What partitions are made for: what can be shared out now, else what could be when this was planned last.

        After a restart resctrl is not mounted, and root's groups are gone. Planned without them, what was measured
        under partitions would fall out of the results, and what is missing would be measured in other cohorts.
        """
        now = self.shareable_cache()
        if self.machine or (now is not None and now.groups):
            return now
        return remembered_cache(self.results.plan_file) or now

    def cast(self, layout: Layout, cache: Cache | None = None) -> mixes.Mixes:
        """Every mix with its members on the CPUs of a machine, and what is tried on its cache."""
        prepared = _OnDemand(lambda name: self._prepared(self.workloads[name]))
        placebo = self.study.model.model_dump_json(exclude_defaults=True) if self.modelled else native.content(PLACEBO)
        peak = self._peak
        together = [
            *(each.members for each in wanted_mixes(self.study)),
            *((lead,) for lead in self.study.leads),
            *((rule.lead, *rule.antagonists) for _, rule in self.study.control_rules),
        ]
        programs = mixes.Programs(at_peak(self.workloads, together, layout, peak, self._elsewhere()), prepared, placebo)
        host = mixes.Host(
            layout, cache, self._memory(), peak, self._no_quota(), self._no_prefetching(layout), bool(self.machine)
        )
        cast = mixes.resolve(self.study, programs, host, str(self.study_file))
        if why := partitions.refusal(self.study.attribution.isolated, cast.mixes):
            line = line_of(
                written_text(self.study_file, "the study"), str(self.study_file), ("attribution", "isolated")
            )
            raise CastmatesError(f"{self.study_file}, line {line}: {why}")
        return node_classes.of_class(cast, self.machine) if self.machine else cast

    def _elsewhere(self) -> str:
        """Name the machine where it is not this one."""
        return "a modelled machine" if self.modelled else "a captured machine" if self.elsewhere else ""

    def _no_quota(self) -> str:
        """Why CPU time cannot be given out; "" where it can."""
        return "" if self.modelled or self.elsewhere else no_quota()

    def _no_prefetching(self, layout: Layout) -> str:
        """Why prefetchers cannot be switched, where the study asks for that; "" where they can."""
        if self.modelled or self.elsewhere or "off" not in self.study.cache.prefetchers:
            return ""
        return refusal(Path("/"), layout.usable[:1])

    @cached_property
    def _keys(self) -> dict[str, str]:
        return {name: environments.key(name, ENVIRONMENTS) for name in environments.known(ENVIRONMENTS)}

    @cached_property
    def _inputs_keys(self) -> "_OnDemand[str]":
        return _OnDemand(lambda name: inputs.key(name, ENVIRONMENTS))

    def _prepared(self, workload: Workload) -> Prepared:
        if self.modelled:
            return Prepared(environment_key=None, content="")
        name = workload.environment
        key = self._keys[name] if name else None
        inputs_key = self._inputs_keys[workload.inputs] if workload.inputs else None
        keepers = environments.keepers(workload.way, name, workload.words, workload.goes_on)
        words = [*workload.words, environments.MODULE] if workload.attach else workload.words
        content = environments.content(name, key, words, keepers, inputs_key)
        return Prepared(environment_key=key, content=content, inputs_key=inputs_key)


def load(study_file: Path | str | None = None, launches: object = None) -> Project:
    """Read and check a study and its catalogue; with as many launches as are asked for now, or were the last time."""
    path = Path(study_file or default_study())
    text = written_text(path, "the study")
    study = read_keys(Study, text, str(path))
    folder = StudyFolder.of(study.name)
    asked = asked_launches(folder) if launches is None else checked_launches(launches, study, str(path))
    study = with_launches(study, asked)
    if study.cache.driver not in OURS:
        if why := rehearsing.refusal(study):
            raise CastmatesError(f"{path}: {why}")
        driver(study.cache.driver)
    files, replaced = catalogue.stacked(map(_catalogue_files, _catalogues(study, path)))
    workloads = catalogue.gather_catalogue(files, study, str(path), environments.known(ENVIRONMENTS), inputs.known())
    study, workloads = with_variants(study, workloads, str(path))
    catalogue.check_names(study, workloads, str(path))
    check_own(study, path)
    mixes = make_mixes(study, workloads, remembered_draw(folder.plan_file), str(path), str(folder.plan_file))
    study = with_made(study, mixes)
    limit = line_of(text, str(path), ("recommend", "latency")) if study.recommend.latency else 0
    catalogue.check_latency(study, workloads, f"{path}, line {limit}")
    workloads = catalogue.as_played(study, workloads, str(path))
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Project(path, study, workloads, fingerprint, made=mixes, replaced=replaced)


def on_captured_machine(project: Project, named: Path | str) -> Project:
    """The project as it would be on another machine: one that was captured into this file, or ships by this name."""
    what = "measures a modelled machine" if project.modelled else ""
    if project.rehearsed:
        what = f"rehearses '{project.rehearsed}' on the machine at hand"
    if project.study.machines and not what:
        what = f"names its machines ({', '.join(project.study.machines)}) and is planned for them"
    if what:
        raise CastmatesError(
            f"{project.study_file}: this study {what}, so --machine would change nothing; leave it out."
        )
    return replace(project, elsewhere=captured_machine(shipped.machine(named)))


def _on_class(project: Project, name: str) -> Project:
    """The project on one of its classes of nodes."""
    one = project.study.machines[name]
    if one.model is not None:
        study = project.study.model_copy(update={"model": one.model, "machines": {}})
        return replace(project, study=study, machine=name)
    study = with_rounds_of_pilot(project.study, project.study_file).model_copy(update={"machines": {}})
    return replace(project, study=study, machine=name, elsewhere=_capture_of(project, name))


def _capture_of(project: Project, name: str) -> Elsewhere:
    try:
        return captured_machine(Path(project.study.machines[name].capture or ""))
    except CastmatesError as problem:
        raise CastmatesError(f"{_place(project, name)}: 'machines.{name}': {problem}") from None


def _place(project: Project, name: str) -> str:
    """Where a class stands: file and line."""
    file = str(project.study_file)
    return f"{file}, line {line_of(written_text(project.study_file, 'the study'), file, ('machines', name))}"


def _refuse_twins(project: Project) -> None:
    """Refuse two classes that one node can be of: their launches would be kept apart for nothing."""
    known: list[tuple[str, Elsewhere]] = []
    for each in project.by_class:
        if each.elsewhere is None:
            continue
        for name, other in known:
            if not difference(other.facts, each.elsewhere.facts):
                raise CastmatesError(
                    f"{_place(project, each.machine)}: the classes '{name}' and '{each.machine}' of 'machines' have "
                    f"the same {other.processor or 'processor'}, caches and memory, so a node would be of both; keep "
                    "one of them: results show each node of a class by itself."
                )
        known.append((each.machine, each.elsewhere))


def read_catalogue(folder: Path) -> dict[str, Workload]:
    """All workloads of a catalogue, without a study."""
    if not folder.is_dir():
        raise CastmatesError(f"{folder}: there is no such folder of catalogue files here ({Path.cwd()}).")
    return catalogue.gather_catalogue(
        _catalogue_files(folder), Study(name="catalogue"), str(folder), environments.known(ENVIRONMENTS), inputs.known()
    )


def _catalogues(study: Study, study_file: Path) -> list[Path]:
    """The folders of a study's catalogue: what stands in the first of them wins."""
    if study.catalogue is not None:
        folder = Path(study.catalogue)
        if not folder.is_dir():
            raise CastmatesError(
                f"{study_file}: 'catalogue' is '{folder}', but there is no such folder here ({Path.cwd()})."
            )
        return [folder]
    own, ours = study_file.parent / "workloads", shipped.catalogue()
    return [own, ours] if own.is_dir() and own.resolve() != ours.resolve() else [ours]


def _catalogue_files(folder: Path) -> list[tuple[str, Catalogue]]:
    return [
        (str(file), expanded(read_keys(Catalogue, written_text(file, "the catalogue"), str(file)), str(file)))
        for file in sorted(folder.glob("*.yaml"))
    ]
