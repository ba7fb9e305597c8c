"""Writes a study's results as a sweep leaves them: plan, records and windows of every launch. Made up, for tests."""

import json
from pathlib import Path

import pandas as pd

from castmates.study.plan_text import plan_text
from castmates.study.spec import Plan

HOST = {"host": "here", "boot_id": "b", "status": "measured", "freezer": "signals"}
VERSIONS = {"castmates": "0.1.0", "kernel": "6.1.0", "python": "3.11.7"}


def write(
    folder: Path, plan: Plan, windows: pd.DataFrame, started: str = "2026-01-05T10:00:00+00:00", **facts: object
) -> Path:
    """`facts` go into every launch's record."""
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(plan_text(plan.model_copy(update={"study": folder.name})))
    (folder / "machine.json").write_text(json.dumps({"hostname": "here", "cpu_model": "Some CPU", "kernel": "6.1.0"}))
    for launch in plan.launches:
        place = folder / "launches" / launch.path
        place.mkdir(parents=True)
        own = windows[(windows["cohort"] == launch.cohort.id) & (windows["launch"] == launch.number)]
        own.to_parquet(place / "windows.parquet")
        platform = own["platform"].iloc[0] if len(own) else "measured"
        record = HOST | {
            "started": started,
            "platform": platform,
            "versions": VERSIONS,
            "rounds": 3,
            "windows": len(own),
        }
        record |= {"windows_rejected": int((~own["valid"]).sum()), "spec": launch.model_dump(mode="json")}
        (place / "launch.json").write_text(json.dumps(record | facts))
    return folder
