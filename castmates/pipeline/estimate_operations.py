"""The profile launches of a plan -> the study's tables of operations."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from castmates.analysis.effects.verdicts import effect_level
from castmates.analysis.operations.effects import estimate_operation_effects
from castmates.analysis.operations.iterations import iterations
from castmates.analysis.operations.kernels import kernels
from castmates.analysis.operations.memory import memory_use
from castmates.analysis.operations.per_trace import Traces, per_trace
from castmates.analysis.operations.pools import thread_pools
from castmates.analysis.operations.stages import input_stages
from castmates.analysis.operations.summary import by_layer, by_type
from castmates.analysis.operations.waiting import input_pipeline
from castmates.pipeline.estimate_first_epoch import first_epoch_table
from castmates.pipeline.estimate_paths import graph_nodes, path_tables
from castmates.pipeline.estimate_primitives import read_logged, work_tables
from castmates.results.asked import looks_before, profile_looks_before, remember_profile_look
from castmates.results.columns.registry import written_by
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from castmates.results.profiles import Profile, first_epoch_profiles, logged_profiles, read_profile, usual_profiles
from castmates.results.tables import tables_of, write_table, written_together
from castmates.study.spec import Plan


def write_tables(plan: Plan, folder: StudyFolder, margin: float, output: Path) -> None:
    """Read every profile launch of the plan, one at a time, and write all tables into `output`."""
    steps, traces, memory, stages, devices = [], [], [], [], []
    paths = usual_profiles(plan, folder)
    for profile in _profiles(paths, folder):
        traces.append(per_trace(profile.calls, profile.steps))
        steps.append(profile.steps)
        memory.append(profile.memory)
        stages.append(profile.stages)
        devices.append(profile.device_calls)
    level = _level(paths, folder, output)
    logged = read_logged(folder, logged_profiles(plan, folder))
    tables: dict[str, Callable[[], pd.DataFrame]] = {}
    every = Traces.together(traces) if traces else None
    if every is not None:
        all_steps = pd.concat(steps, ignore_index=True)
        both = every.compared
        tables = {
            "operation_effects": lambda: estimate_operation_effects(every, margin, level),
            "operation_types": lambda: by_type(every),
            "operation_layers": lambda: by_layer(every),
            "iterations": lambda: iterations(all_steps),
            "input_pipeline": lambda: input_pipeline(every),
            "thread_pools": lambda: thread_pools(every),
            "not_compared": lambda: every.not_compared,
            "memory_use": lambda: memory_use(pd.concat(memory, ignore_index=True), all_steps, both),
            "kernels": lambda: kernels(pd.concat(devices, ignore_index=True), all_steps),
            "input_stages": lambda: input_stages(pd.concat(stages, ignore_index=True), all_steps, both),
        }
    tables |= logged.tables() if logged else {}
    tables |= work_tables(logged, every, graph_nodes(folder, paths))
    tables |= path_tables(folder, paths)
    tables["first_epoch"] = lambda: first_epoch_table(folder, first_epoch_profiles(plan, folder))
    with written_together(output, "estimate_operations") as made:
        for name, columns in written_by("estimate_operations", tables_of(plan, folder)).items():
            table = tables[name]() if name in tables else frame([], columns)
            write_table(table[list(columns)].astype(dict(columns)) if len(table) else frame([], columns), made / name)


def _level(paths: Sequence[str], folder: StudyFolder, output: Path) -> float:
    """The level of verdicts: stricter where launches were added after their results were there."""
    companies = Counter(path.rpartition("/")[0] for path in paths)
    remember_profile_look(folder, _launches_before(output), max(companies.values(), default=0))
    return effect_level([*looks_before(folder), *profile_looks_before(folder)])


def _launches_before(output: Path) -> int:
    """How many launches the table has that is about to be replaced; 0 where there is none."""
    try:
        launches = pd.read_parquet(output / "operation_effects.parquet", columns=["launches"])["launches"]
    except (OSError, ValueError):
        return 0
    return int(launches.max()) if len(launches) else 0


def _profiles(paths: Sequence[str], folder: StudyFolder) -> Iterator[Profile]:
    for path in paths:
        profile = read_profile(folder.profile(path))
        if len(profile.steps):
            yield profile
