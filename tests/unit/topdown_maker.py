"""Puts made-up Top-Down shares into a made-up results folder. Synthetic, for tests only: nothing in it was measured."""

import json
import random

import pandas as pd

from castmates.results.columns.launch import TOPDOWN
from castmates.results.columns.study import frame
from castmates.study.counter_keys import BY_NAME

ALONE = {"Frontend_Bound": 0.16, "Bad_Speculation": 0.05, "Retiring": 0.44, "Backend_Bound": 0.35}
BELOW = {"Fetch_Latency": ("Frontend_Bound", 0.7), "Fetch_Bandwidth": ("Frontend_Bound", 0.3),
         "Branch_Mispredicts": ("Bad_Speculation", 0.9), "Machine_Clears": ("Bad_Speculation", 0.1),
         "Heavy_Operations": ("Retiring", 0.2), "Light_Operations": ("Retiring", 0.8),
         "Memory_Bound": ("Backend_Bound", 0.6), "Core_Bound": ("Backend_Bound", 0.4)}  # fmt: skip


def shares(loss, dice, smt=0.0):
    """Slots that are lost beside an antagonist are lost to the memory, and taken from everything else alike."""
    noise = dice.gauss(0, 0.004)
    backend = ALONE["Backend_Bound"] + 0.8 * loss + noise
    rest = (1 - backend - smt) / (1 - ALONE["Backend_Bound"])
    level1 = {name: share * rest for name, share in ALONE.items() if name != "Backend_Bound"} | {
        "Backend_Bound": backend
    }
    level2 = {name: level1[parent] * part for name, (parent, part) in BELOW.items()}
    memory = ALONE["Backend_Bound"] * 0.6 + 0.8 * loss + noise
    level2 |= {"Memory_Bound": memory, "Core_Bound": backend - memory}
    return level1 | level2 | {"DRAM_Bound": memory * 0.9} | ({"SMT_Contention": smt} if smt else {})


def add(folder, running=1.0, smt=0.0, why="", losses=(0.3, 0.1, 0.0)):
    """Write topdown.parquet beside every launch.json; with a reason instead of values where `why` is given."""
    dice = random.Random(11)
    windows = pd.read_parquet(folder / "tables" / "windows.parquet")
    mixes = sorted(set(windows["mix"]) - {""})
    for (cohort, launch), rows in windows.groupby(["cohort", "launch"]):
        told = []
        for row in rows.to_dict("records"):
            loss = losses[mixes.index(row["mix"]) % len(losses)] if row["mix"] else 0.0
            for name, value in shares(loss, dice, smt if row["mix"] else 0.0).items():
                told.append({**{key: row[key] for key in TOPDOWN if key in row}, "level": BY_NAME[name].level,
                             "metric": name, "value": float("nan") if why else value,
                             "status": "not supported" if why else "counted" if running > 0.99 else "scaled",
                             "running": float("nan") if why else running, "scope": "cgroup", "source": "perf stat",
                             "phase": "", "note": why})  # fmt: skip
        place = folder / "launches" / str(cohort) / str(launch)
        assert json.loads((place / "launch.json").read_text())
        frame(told, TOPDOWN).to_parquet(place / "topdown.parquet")
    return folder
