"""Writes a made-up results folder in the real layout. Synthetic, for tests only: nothing in it was measured."""

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

from castmates.results.columns.launch import WINDOWS
from castmates.results.columns.registry import TABLES
from castmates.results.columns.study import ATTRIBUTION, CARRYOVER, CONTROLS, EFFECTS, LAUNCHES, MARGINS, frame
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.tables import tables_of
from castmates.study.spec import PROTOCOL
from tests.unit.windows_maker import one_slice

LOSSES = (0.096, 0.004, 0.012, 0.31, -0.021, 0.0)
T95 = {3: 4.303, 4: 3.182, 5: 2.776}
MACHINE = {
    "read_at": "2026-01-05T10:00:00+00:00",
    "hostname": "synthetic-host",
    "cpu_model": "Synthetic CPU @ 2.0 GHz",
    "kernel": "6.1.0-synthetic",
    "memory_bytes": 16 * 2**30,
    "topology": {"cpus": "0-7", "allowed": "0-7", "cores": 4, "packages": 1, "llcs": [{"id": 0, "level": 3,
                 "bytes": 32 * 2**20, "ways": 16, "cpus": "0-7"}], "nodes": []},
    "turbo": {"on": True, "switch": "x"},
    "governors": None,
    "resctrl": {"kernel": False, "mounted": None},
    "perf": {"version": None, "why": None, "hardware": None, "software": None},
    "virtualisation": {"vm": "kvm", "container": None},
}  # fmt: skip


def make(
    folder: Path,
    leads: Sequence[str] = ("dlrm-train", "resnet-infer"),
    antagonists: Sequence[str] = ("stream", "compute", "chase"),
    launches: int = 5,
    rounds: int = 3,
    missing: Sequence[tuple[str, str]] = (),
    failed: int = 0,
    platform: str = "measured",
    machine: dict | None = None,
) -> Path:
    """Make results/<study> with these leads beside these antagonists; `failed` launches of every lead fail."""
    dice = random.Random(7)
    study = folder.name
    windows, launch_rows, effects, controls, traces, parts = [], [], [], [], [], []
    for lead_number, lead in enumerate(leads):
        mixes = [name for name in antagonists if (lead, name) not in missing]
        scenes = [
            ("alone", "alone", "", 0.0),
            ("alone-again", "alone-again", "", 0.0),
            ("placebo:1", "placebo", "", 0.01),
        ]
        for number, name in enumerate(mixes):
            loss = LOSSES[(number + 2 * lead_number) % len(LOSSES)]
            scenes.append((f"corun:{lead}+{name}", "corun", f"{lead}+{name}", loss))
        logs: dict[str, list[list[float]]] = {scene[0]: [] for scene in scenes}
        for launch in range(1, launches + 1):
            head = {"study": study, "cohort": f"{lead}-0000abcd", "launch": launch, "platform": platform}
            works = launch > failed
            rows = _launch(head, lead, scenes, rounds, dice, logs) if works else []
            windows += rows
            launch_rows.append(
                head | {
                    "lead": lead, "status": "measured" if works else "failed",
                    "reason": "" if works else f"{lead} ended with status 1 before it was ready",
                    "started": "2026-01-05T10:00:00+00:00", "launch_seconds": 7.5 if works else math.nan,
                    "total_seconds": 61.0, "rounds": rounds if works else 0, "windows": len(rows),
                    "windows_rejected": sum(not row["valid"] for row in rows),
                }
            )  # fmt: skip
        measured = launches - failed
        if mixes:
            effects.append(_alone(study, lead, mixes[0], measured, rounds, platform))
        for name in mixes:
            parts += _parts(study, lead, name, logs, rounds, platform)
            for baseline in ("alone", "placebo"):
                scene, base = logs[f"corun:{lead}+{name}"], logs["alone" if baseline == "alone" else "placebo:1"]
                ratio = _ratio(base, scene)
                effects.append(_effect(study, lead, name, baseline, ratio, rounds, platform))
        ratio = _ratio(logs["alone"], logs["alone-again"])
        verdict = "no data" if not measured else "too few launches" if measured < 3 else "passes"
        controls.append(
            {"study": study, "lead": lead, "control": "A/A", "ratio": ratio[0], "ratio_low": ratio[1],
             "ratio_high": ratio[2], "within_low": ratio[3], "within_high": ratio[4], "launches": measured,
             "rounds": measured * rounds, "p_value": math.nan, "p_holm": math.nan, "verdict": verdict,
             "platform": platform, "mix": "", "baseline": "alone", "study_lead": True}
        )  # fmt: skip
        traces.append(_trace(study, f"{lead}@0", "lead", measured, platform))
    if leads:
        controls += _known(study, launches, rounds, platform)
        traces.append(_trace(study, "stream@1", "antagonist", launches, platform))
    tables = {"windows": (windows, WINDOWS), "launches": (launch_rows, LAUNCHES), "effects": (effects, EFFECTS),
              "controls": (controls, CONTROLS), "carryover": (traces, CARRYOVER),
              "attribution": (parts, ATTRIBUTION),
              "margins": (_margins(effects, leads, antagonists), MARGINS)}  # fmt: skip
    _write(folder, tables, MACHINE if machine is None else machine)
    _plan(folder, study, {f"{lead}-0000abcd": [lead, *antagonists] for lead in leads}, launch_rows)
    return folder


def _launch(head, lead, scenes, rounds, dice, logs):
    rows, clock, launch = [], 10**12, dice.gauss(0, 0.006)
    for scene in scenes:
        logs[scene[0]].append([])
    for number in range(1, rounds + 1):
        for position, (name, kind, mix, loss) in enumerate(dice.sample(scenes, len(scenes)), 1):
            rate = 120 * math.exp(dice.gauss(0, 0.004) + (launch if kind == "corun" else 0)) * (1 - loss)
            rejected = dice.random() < 0.05
            logs[name][-1].append(math.log(rate))
            rows.append(
                head | {
                    "round": number, "position": position, "window": len(rows) + 1, "scene": name, "kind": kind,
                    "mix": mix, "partition": "unmanaged", "member": f"{lead}@0", "workload": lead, "role": "lead",
                    "unit": "step", "open_ns": clock, "close_ns": clock + 10**9, "first_ns": clock + 5 * 10**6,
                    "last_ns": clock + 995 * 10**6, "beats": 100, "units": 100.0, "valid": not rejected,
                    "rate": rate * (0.93 if rejected else 1), "reasons": "steal: 2.4 % of cpu0" if rejected else "",
                    "reason_kinds": "steal" if rejected else "", "blamed": "",
                } | one_slice(not rejected)
            )  # fmt: skip
            clock += 1_300_000_000
    return rows


def _ratio(base, scene):
    """Geometric mean of the launches' ratios, with an interval between launches and one within."""
    means = [fmean(b) - fmean(s) for b, s in zip(base, scene, strict=True)]
    if not means:
        return (math.nan,) * 5 + (0,)
    centre, n = fmean(means), len(means)
    half = T95.get(n, 2.1) * stdev(means) / math.sqrt(n) if n >= 3 else math.nan
    return (*(math.exp(x) for x in (centre, centre - half, centre + half, centre - 0.003, centre + 0.003)), n)


def _parts(study, lead, name, logs, rounds, platform):
    """What a loss is due to, without a partition: a busy antagonist, and all else."""
    chain = {
        "total": ("alone", "unmanaged"),
        "busy antagonist": ("alone", "placebo"),
        "sharing": ("placebo", "unmanaged"),
    }
    scenes = {"alone": "alone", "placebo": "placebo:1", "unmanaged": f"corun:{lead}+{name}"}
    rows = []
    for part, (start, end) in chain.items():
        *found, launches = _ratio(logs[scenes[start]], logs[scenes[end]])
        log, low, high, within_low, within_high = map(math.log, found)
        rows.append(
            {"study": study, "mix": f"{lead}+{name}", "lead": lead, "antagonists": name, "member": f"{lead}@0",
             "part": part, "part_of": "" if part == "total" else "total", "start": start, "end": end, "log": log,
             "log_low": low, "log_high": high, "points": 100 * log, "points_low": 100 * low, "points_high": 100 * high,
             "launches": launches, "rounds": launches * rounds, "p_value": 0.5, "p_holm": 0.5, "platform": platform,
             "verdict": "unclear" if launches >= 3 else "too few launches" if launches else "no data",
             "within_low": within_low, "within_high": within_high, "how": "", "partition": "", "candidates": 0,
             "launches_choosing": 0, "note": "no partition gives the lead and its antagonists separate ways",
             "possibly_biased": False}
        )  # fmt: skip
    return rows


def _alone(study, lead, name, launches, rounds, platform):
    """The row of an antagonist, which loses a little against running alone."""
    ratio = (
        (1.05, 1.04, 1.06, 1.045, 1.055, launches)
        if launches >= 3
        else (1.05, math.nan, math.nan, 1.045, 1.055, launches)
    )
    row = _effect(study, lead, name, "alone", ratio if launches else _ratio([], []), rounds, platform)
    return row | {"member": f"{name}@1", "role": "antagonist", "p_holm": math.nan}


def _effect(study, lead, name, baseline, ratio, rounds, platform):
    slowdown, low, high, within_low, within_high, launches = ratio
    p_holm = 0.04 if launches >= 3 else math.nan
    loss = [100 * (1 - 1 / value) for value in (slowdown, low, high)]
    if not launches:
        verdict = "no data"
    elif launches < 3:
        verdict = "too few launches"
    elif loss[1] > -2 and loss[2] < 2:
        verdict = "no loss"
    else:
        verdict = "loss" if loss[1] > 0 else "gain" if loss[2] < 0 else "unclear"
    return {
        "study": study, "mix": f"{lead}+{name}", "lead": lead, "antagonists": name, "member": f"{lead}@0",
        "role": "lead", "partition": "unmanaged", "lead_ways": None, "baseline": baseline, "metric": "rate",
        "slowdown": slowdown, "slowdown_low": low, "slowdown_high": high, "loss_pct": loss[0],
        "loss_low": loss[1], "loss_high": loss[2], "launches": launches, "rounds": launches * rounds,
        "windows_valid": launches * rounds, "windows_rejected": 0, "platform": platform, "within_low": within_low,
        "within_high": within_high, "p_value": p_holm, "p_holm": p_holm, "verdict": verdict,
        "baseline_windows_valid": launches * rounds, "baseline_windows_rejected": 0,
        "rejection_rate": 0.0 if launches else math.nan, "baseline_rejection_rate": 0.0 if launches else math.nan,
        "possibly_biased": False, "growth_pct": 0.1, "growth_low": -0.4, "growth_high": 0.6, "still_growing": False,
        "others_seen": False,
        "machine": "", "nodes": 1, "nodes_p_holm": math.nan, "over": "launches",
        "freedom": launches - 1 if launches >= 3 else math.nan, "sessions": min(launches, 1),
    }  # fmt: skip


def _known(study, launches, rounds, platform):
    """What the controls of a study leave: the A/A of their leads, and their own outcome."""
    few = launches < 3
    found = [
        ("A/A", "chase", "", "alone", 1.002, "passes"),
        ("A/A", "compute", "", "alone", 0.9995, "passes"),
        ("positive", "chase", "chase+stream", "alone", 1.31, "sensitive"),
        ("negative", "compute", "compute+compute", "placebo", 1.0004, "passes"),
    ]
    return [
        {"study": study, "lead": lead, "control": control, "ratio": ratio,
         "ratio_low": math.nan if few else ratio - 0.006, "ratio_high": math.nan if few else ratio + 0.006,
         "within_low": ratio - 0.004, "within_high": ratio + 0.004, "launches": launches, "rounds": launches * rounds,
         "p_value": math.nan, "p_holm": math.nan, "verdict": "too few launches" if few else verdict,
         "platform": platform, "mix": mix, "baseline": baseline, "study_lead": False}
        for control, lead, mix, baseline, ratio, verdict in found
    ]  # fmt: skip


def _trace(study, member, role, launches, platform):
    """What a member's windows show of the scene before."""
    enough = launches >= 3
    numbers = {"change_pct": -0.1, "change_low": -0.6, "change_high": 0.4, "detectable_pct": 0.9, "p_value": 0.6}
    return {"study": study, "member": member, "workload": member.partition("@")[0], "role": role,
            **(numbers | {"p_holm": 1.0} if enough else {}), "launches": launches, "windows": 10 * launches,
            "windows_after_frozen": 6 * launches, "verdict": "none seen" if enough else "too few windows",
            "platform": platform}  # fmt: skip


def _margins(effects, leads, antagonists):
    """The means of whole rows and columns, with an interval of a point to either side."""
    cells = {(row["lead"], row["antagonists"], row["baseline"]): row for row in effects if row["role"] == "lead"}
    sides = [("sensitivity", lead, [(lead, name) for name in antagonists]) for lead in leads]
    sides += [("contentiousness", name, [(lead, name) for lead in leads]) for name in antagonists]
    rows = []
    for margin, who, places in sides:
        for baseline in ("alone", "placebo"):
            found = [cells[*place, baseline] for place in places if (*place, baseline) in cells]
            whole = 0 < len(found) == len(places) and all(row["launches"] for row in found)
            mean = math.exp(fmean(math.log(row["slowdown"]) for row in found)) if whole else math.nan
            few = not whole or min(row["launches"] for row in found) < 3
            ends = [math.nan if few else mean * factor for factor in (0.99, 1.01)]
            loss = [100 * (1 - 1 / value) for value in (mean, *ends)]
            rows.append(
                {"study": found[0]["study"] if found else "", "margin": margin, "who": who, "baseline": baseline,
                 "slowdown": mean, "slowdown_low": ends[0], "slowdown_high": ends[1], "loss_pct": loss[0],
                 "loss_low": loss[1], "loss_high": loss[2], "cells": len(found),
                 "cells_of": len(places), "launches": sum(row["launches"] for row in found),
                 "platform": found[0]["platform"] if found else ""}
            )  # fmt: skip
    return rows


def _write(folder, contents, machine):
    tables = folder / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    for name, (rows, columns) in contents.items():
        table = frame(rows, columns)
        table.to_parquet(tables / f"{name}.parquet")
        table.to_csv(tables / f"{name}.csv", index=False)
    (folder / "machine.json").write_text(json.dumps(machine))


def _plan(folder, study, cohorts, launches):
    """The plan, and the record of every launch."""
    design = {"rounds": 3, "spare_rounds": 1, "window": 1.0, "longest_window": 5.0, "settle": 0.3,
              "longest_settle": 1.0, "steps": 10, "limits": {"steal": 0.01, "foreign": 0.02, "swap": 0}}  # fmt: skip
    casts = {cohort: [_member(name, cpu) for cpu, name in enumerate(names)] for cohort, names in cohorts.items()}
    planned = []
    for row in launches:
        lead = casts[row["cohort"]][0]["name"]
        cohort = {"id": row["cohort"], "protocol": PROTOCOL, "native_key": "n", "members": casts[row["cohort"]],
                  "mixes": [{"name": "m", "identity": "m", "lead": lead, "antagonists": []}],
                  "scenes": [{"name": "placebo:1", "kind": "placebo", "mix": "", "active": [lead], "placebos": [1],
                              "partition": "unmanaged"}]}  # fmt: skip
        planned.append({"study": study, "cohort": cohort, "number": row["launch"], "seed": 3, "design": design})
        settle = {"seconds": 0.3, "steady_after": 0.11, "slowest": "stream@1"} if row["status"] == "measured" else None
        record(folder, row["cohort"], row["launch"], status=row["status"], spec=planned[-1], settle=settle)
    titles = {name: f"The {name}" for names in cohorts.values() for name in names}
    plan = {"study": study, "titles": titles, "mixes": [], "controls": [], "launches": planned}
    (folder / "plan.json").write_text(json.dumps(plan))
    fill(folder)


def fill(folder: Path) -> None:
    """Write each table that the plan asks for and that is not there, without rows."""
    for name in tables_of(read_plan(folder / "plan.json"), StudyFolder(folder)):
        if not (file := folder / "tables" / f"{name}.parquet").exists():
            frame([], TABLES[name]).to_parquet(file)


def _member(name, cpu):
    return {
        "name": f"{name}@{cpu}", "workload": name, "role": "antagonist" if cpu else "lead", "cpus": [cpu],
        "command": ["python3", "-m", "synthetic", name], "environment": None, "unit": "step", "nodes": [],
        "environment_key": None, "content": "c", "progress": "heartbeat", "variables": {}, "ready_within": 60.0,
    }  # fmt: skip


def record(folder: Path, cohort: str, launch: int, **facts: object) -> None:
    """Write a launch.json; `facts` replace what it usually holds."""
    place = folder / "launches" / cohort / str(launch)
    place.mkdir(parents=True, exist_ok=True)
    usual = {
        "status": "measured", "host": MACHINE["hostname"], "freezer": "signals",
        "versions": {"python": "3.11", "snakemake": "9.27.1", "kernel": MACHINE["kernel"]},
    }  # fmt: skip
    (place / "launch.json").write_text(json.dumps(usual | facts))
