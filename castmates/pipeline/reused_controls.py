"""Control launches that other studies measured on this machine since it started: they count for a new study too.

Controls ask something of the machine and of the method, and nothing of the user's program. So the launches of one
study serve the next ones, where all that defines them is the same: members on the same CPUs, design, versions, settings
of the machine, and its start. Each study measures for itself the first launch of each control, which is compared
with those that are reused, and, in the launches of the program itself, the program beside itself and beside a placebo.
"""

import json
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from castmates.analysis.effects.reused import CHANGED, difference_of_reused
from castmates.english import counted, listed
from castmates.files import cache_folder, mapping_if_there
from castmates.linux.owner import boot_id
from castmates.machine.shown_facts import facts_here
from castmates.pipeline import snakemake
from castmates.project import Project, load
from castmates.protocols import Say
from castmates.results.folder import RESULTS, StudyFolder
from castmates.results.launch_tables import read_windows
from castmates.results.records import REUSED, Record, forget_useless, record_or_why, useless
from castmates.results.reused import copy_launch
from castmates.runner.record import versions
from castmates.study.spec import Launch, Plan

FRESH = 1  # this launch of each control is never reused
OLDEST = timedelta(hours=24)
SETTINGS = (
    "aslr",
    "cmdline",
    "governors",
    "idle_states",
    "isolated_cpus",
    "ksm",
    "microcode",
    "mitigations",
    "nmi_watchdog",
    "numa_balancing",
    "topology",
    "transparent_hugepages",
    "turbo",
    "uncore_clock",
)  # fmt: skip  (of machine.json)


def sweep_with_reused(file: Path, cores: str, say: Say, launches: int | None, options: Sequence[str]) -> None:
    """Measure what is missing of a study; without controls that another study here has measured already."""
    project = load(file, launches)
    snakemake.refuse_running_sweep(project.results)
    for why, place in forget_useless(project.results):
        say(f"discarded ({why}): {place}")
    if found := reuse(project):
        say(_words(found))
    snakemake.sweep(file, cores, say, launches, options, shows_result=False)
    if stale := _stale(project, say):
        snakemake.refuse_running_sweep(project.results)
        for launch in stale:
            shutil.rmtree(project.results.launch(launch.path))
        snakemake.sweep(file, cores, say, launches, options, shows_result=False)


def _stale(project: Project, say: Say) -> list[Launch]:
    """The launches that were reused, where those that were measured now show that the machine has changed."""
    plan = project.results.measured(project.plan())
    reused = [launch for launch in plan.launches if _record(project, launch).get(REUSED)]
    if not reused:
        return []
    p = difference_of_reused(plan, read_windows(project.results.places(plan)), [launch.path for launch in reused])
    if p is None or p >= CHANGED:
        return []
    say(
        f"the controls that were measured now differ from those that were reused (p = {p:.2g}): the machine has "
        "changed since then, so all of them are measured again."
    )
    return reused


def reuse(project: Project) -> list[Record]:
    """Take what is missing of a study's controls from others; the records of what was found."""
    if not project.study.controls or not project.study.controls.reuse or project.modelled or project.study.machines:
        return []
    plan = project.plan()
    wanted = [launch for launch in _of_controls(plan) if launch.number != FRESH and not _record(project, launch)]
    if not wanted:
        return []
    now = _settings(facts_here(cache_folder()))
    return [found for launch in wanted if (found := _take(project.results, launch, now)) is not None]


def _of_controls(plan: Plan) -> Iterator[Launch]:
    results = {mix.identity for mix in plan.mixes}
    for launch in plan.launches:
        if not results & {mix.identity for mix in launch.cohort.mixes}:
            yield launch


def _record(project: Project, launch: Launch) -> Mapping[str, Any]:
    file = project.results.record_file(launch)
    return record_or_why(file) if file.is_file() else {}


def _take(folder: StudyFolder, launch: Launch, now: str) -> Record | None:
    """Copy the newest launch that is the same as this one but for its study; None where there is none."""
    known: list[tuple[str, Path, dict[str, Any]]] = []
    for donor in map(StudyFolder, sorted(RESULTS.glob("[!.]*"))):
        file = donor.record_file(launch)
        if donor.path != folder.path and file.is_file():
            record = record_or_why(file)
            if is_same(record, launch) and _settings(mapping_if_there(donor.machine_file)) == now:
                known.append((str(record["started"]), file, record))
    if not known:
        return None
    _, file, record = max(known, key=lambda each: each[0])
    copy_launch(file.parent, folder.launch(launch.path), launch.study)
    return record


def is_same(record: Record, launch: Launch) -> bool:
    """Whether a launch of another study is what this one would be."""
    if useless(record) or record.get(REUSED) or "spec" not in record:
        return False
    if record.get("boot_id") != boot_id() or record.get("host") != platform.node():
        return False
    age = datetime.now(UTC) - datetime.fromisoformat(record["started"])
    had = record["spec"] | {"study": launch.study}
    return timedelta() <= age < OLDEST and had == launch.model_dump(mode="json") and record["versions"] == versions()


def _settings(facts: Mapping[str, Any]) -> str:
    """The settings of a machine, as its facts in memory and those in a file show them alike."""
    cpus = {key: value for key, value in facts.get("topology", {}).items() if key != "nodes"}  # free memory varies
    return json.dumps({key: facts.get(key) for key in SETTINGS} | {"topology": cpus}, sort_keys=True)


def _words(found: Sequence[Record]) -> str:
    """What is reused, and from where."""
    studies = sorted({str(record["spec"]["study"]) for record in found})
    oldest = datetime.fromisoformat(min(str(record["started"]) for record in found)).astimezone()
    return (
        f"{counted(len(found), 'launch')} of controls {'is' if len(found) == 1 else 'are'} reused from "
        f"{listed(studies)}, measured here since {oldest:%H:%M}; the first of each control is measured here."
    )
