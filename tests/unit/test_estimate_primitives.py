"""Launches under oneDNN's log: their times enter their own tables, and no others."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from castmates.pipeline.estimates import write_operation_tables
from castmates.results.columns.operations import DEVICE_CALLS, MEMORY, OPERATIONS, PROFILED_STEPS, TRACED_STAGES
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.primitives import PRIMITIVES
from castmates.results.folder import StudyFolder
from castmates.study.model import Workload
from castmates.study.profile_launches import identity_of, is_logged
from castmates.study.spec import Launch
from tests.unit.makers import plan, study, workloads
from tests.unit.operations_maker import COMMON, call_of, steps_of

DENSE = "model/dense/MatMul:MatMul"
USUAL_MS, LOGGED_MS, PRIMITIVE_MS = 4.0, 9.0, 2.0
EMPTY = {"str": "", "int64": 0, "float64": 0.0, "Int64": None}


def whole(row: Mapping[str, object], columns: Mapping[str, str]) -> dict[str, object]:
    """The row with all columns of its contract."""
    filled = {name: row.get(name, EMPTY[kind]) for name, kind in columns.items()}
    return {name: round(value) if columns[name] == "int64" else value for name, value in filled.items()}


def leave(launch: Launch, folder: Path, flags: list[str] | None) -> None:
    """What a launch leaves whose one operation takes longer under the log."""
    folder.mkdir(parents=True)
    logged = is_logged(launch)
    ms = LOGGED_MS if logged else USUAL_MS
    about = COMMON | {"cohort": launch.cohort.id, "launch": launch.number, "round": 1}
    calls, steps, primitives = [], [], []
    beside = [("corun:m", "corun", "lead@0+other@1")] if launch.cohort.mixes[0].antagonists else []
    for scene, kind, mix in [("alone", "alone", ""), *beside]:
        own = about | {"scene": scene, "kind": kind, "mix": mix}
        calls += [whole(own | call_of(DENSE, ms, step), OPERATIONS) for step in range(4)]
        steps += [whole(own | row, PROFILED_STEPS) for row in steps_of(ms + 1.0)]
        executed = {"primitive": "matmul", "shapes": "2x3:3x4", "data_types": "src:f32 wei:f32 dst:f32"}
        executed |= {"operation": "model/dense/MatMul", "type": "MatMul", "direction": "forward"}
        executed |= {"duration_ns": round(1e6 * PRIMITIVE_MS)}
        primitives += [whole(own | executed | {"step": step}, PRIMITIVES) for step in range(4)]
    write_rows(calls, OPERATIONS, folder / "operations.parquet")
    write_rows(steps, PROFILED_STEPS, folder / "profiled_steps.parquet")
    for table in (MEMORY, TRACED_STAGES, DEVICE_CALLS):
        write_rows([], table, folder / f"{table.name}.parquet")
    if logged:
        write_rows(primitives, PRIMITIVES, folder / "primitives.parquet")
    record = {"identity": identity_of(launch), "host": "here", "cpu_model": "one", "cohort": launch.cohort.id}
    record |= {"primitives": True, "flags": flags, "roofs": {"memory_gbs": float(launch.number)}} if logged else {}
    (folder / "profile.json").write_text(json.dumps(record))


def test_times_under_the_log_enter_their_own_tables_alone(tmp_path):
    job = Workload(command="python -m castmates.workloads.tfmodels --model dlrm", progress="heartbeat", unit="step")
    asked = study(["job"], ["stream"], profile={"launches": 3, "primitives": True})
    made, folder = plan(asked, programs=workloads("stream", job=job)), StudyFolder(tmp_path)
    for launch in made.profiles:
        leave(launch, folder.profile(launch.path), ["avx2"] if launch.number > 101 else None)
    write_operation_tables(made, folder, 0.02, tmp_path / "tables")
    tables = {file.stem: pd.read_parquet(file) for file in (tmp_path / "tables").glob("*.parquet")}
    summary = tables["operation_summary"].query("operation == 'model/dense/MatMul'")
    assert summary["shared_ms"].tolist() == pytest.approx([USUAL_MS] * 2)
    assert set(summary["launches"]) == {3}
    assert set(tables["iterations"]["mean_ms"]) == {USUAL_MS + 1.0}
    primitives = tables["primitive_summary"]
    assert primitives["ms"].tolist() == pytest.approx([PRIMITIVE_MS] * 2)
    assert primitives["share"].tolist() == pytest.approx([PRIMITIVE_MS / (LOGGED_MS + 1.0)] * 2)
    assert set(tables["roofline"]["memory_gbs"]) == {103.0}, "the best launch"
    assert set(tables["isa_use"]["processor"]) == {"not known"}, "one launch does not know its processor's flags"
