"""From a plan to the files of one trace, ending in good order however it is ended."""

from pathlib import Path

from castmates.files import cache_folder
from castmates.pipeline.estimate_traces import write_tables
from castmates.pipeline.lock import hold_sweep_lock
from castmates.pipeline.measure_launch import measure
from castmates.pipeline.trace_folder import begin, finish, give_up, refuse_full_disk, remove
from castmates.project import ENVIRONMENTS, Project
from castmates.runner.node_check import refuse_other_node
from castmates.study.plan_text import Task, task_for
from castmates.study.spec import Launch, Plan
from castmates.study.trace_launches import trace_name
from castmates.workloads import environments, inputs


def trace_launch(task: Task, folder: Path, cache: Path, owner: int | None = None) -> None:
    """Record the scenes of a launch; the files are written into `folder`.

    A trace that lies there stays until the new one is whole, and where the launch fails or is killed.
    """
    refuse_full_disk(task.launch, folder)
    new = begin(folder)
    try:
        measure(task, new, cache, owner)
    except (SystemExit, KeyboardInterrupt):  # we were asked to end: no log is of any use
        remove(new)
        raise
    except BaseException:
        give_up(new)
        raise
    finish(new, folder)


def trace_now(project: Project, plan: Plan, launch: Launch) -> Path:
    """Make one trace without a sweep: prepare what its members need, and record; return its folder."""
    task = task_for(launch, plan)
    refuse_other_node(task.launch, task.machines)  # before minutes of building
    folder, cache = project.results.trace(trace_name(launch)), cache_folder()
    refuse_full_disk(launch, folder)  # before programs are built
    hold_sweep_lock(project.results)
    members = launch.cohort.members
    for name in sorted({environments.NATIVE, *(each.environment for each in members if each.environment)}):
        environments.build(name, ENVIRONMENTS, cache)
    for name in sorted({each.inputs for each in members if each.inputs}):
        inputs.build(name, ENVIRONMENTS, cache)
    trace_launch(task, folder, cache)
    if project.results.plan_file.is_file():  # findings know it at once
        write_tables(project.results, project.results.tables)
    return folder
