"""Plans launches of a cohort by the checkout that is first on PYTHONPATH, or works out what they showed.

Run by trees.py in a process for each tree: their modules have the same names and other contents.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

import castmates
from benchmarks import launches
from benchmarks.precision import Floats
from castmates.files import replace_text
from castmates.results.plans import read_plan
from castmates.study.plan_text import plan_text
from castmates.study.spec import Plan


def main() -> None:
    """`plan` or `show`, the folder of the tree's launches, and a file that is read or written."""
    order, folder, file = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if order == "plan":
        plan(folder, json.loads(file.read_text()))
    else:
        replace_text(file, json.dumps(shown(folder)))


def plan(folder: Path, asked: dict[str, Any]) -> None:
    """Write a plan of one launch for each launch there may be."""
    study = launches.study_of(_without_partitions(Path(asked["study"]), folder), asked["seed"], **asked["budget"])
    whole = launches.cohort_plan(study, asked["lead"], asked["antagonists"], folder)
    for number in range(1, asked["launches"] + 1):
        launch = launches.numbered(whole, number)
        place = folder / str(number)
        place.mkdir()
        replace_text(place / "plan.json", plan_text(launches.only(whole, launch)))
    about = {
        "castmates": str(Path(castmates.__file__).resolve().parents[1]),
        "path": whole.launches[0].cohort.id,
        "members": [member.name for member in whole.launches[0].cohort.members],
        "mixes": [mix.name for mix in whole.mixes],
        "scenes": [scene.name for scene in whole.launches[0].cohort.scenes],
        "rounds": study.budget.rounds,  # a word where launches decide on them
        "design": whole.launches[0].design.model_dump(mode="json"),
    }
    replace_text(folder / "about.json", json.dumps(about))


def _without_partitions(study: Path, folder: Path) -> Path:
    """The same study where it asks for no partitions: their scenes would belong to the cohort too."""
    text = yaml.safe_load(study.read_text(encoding="utf-8"))
    file = folder / "asked.yaml"
    file.write_text(yaml.safe_dump({key: text[key] for key in text if key not in ("cache", "recommend")}))
    return file


def shown(folder: Path) -> dict[str, Any]:
    """The losses of the launches that are there, by launch and mix, and their seconds."""
    done = sorted((file.parent for file in folder.glob("*/launch.json")), key=lambda place: int(place.name))
    plans = [read_plan(place / "plan.json") for place in done]
    measured = [
        launches.Measured(
            one.launches[0],
            json.loads((place / "launch.json").read_text()),
            pd.read_parquet(place / "windows.parquet"),
            float((place / "seconds").read_text()),
            False,
        )
        for one, place in zip(plans, done, strict=True)
    ]
    losses, seconds = launches.losses(plans[0], measured)
    rounds = [_by_round(plans[0], one) for one in measured]
    records = [one.record for one in measured]
    return {
        "losses": losses.tolist(),
        "seconds": seconds.tolist(),
        "by_round": [one.tolist() for one in rounds],
        "launches": len(measured),
        "windows": sum(record["windows"] for record in records),
        "rejected": sum(record["windows_rejected"] for record in records),
        "protocols": sorted({record["spec"]["cohort"]["protocol"] for record in records}),
    }


def _by_round(plan: Plan, one: launches.Measured) -> Floats:
    """A launch's losses by round and mix, of the rounds with a pair of windows for every mix."""
    windows = [own for _, own in one.windows.groupby("round")]
    return np.concatenate([launches.losses(plan, [dataclasses.replace(one, windows=own)])[0] for own in windows])


if __name__ == "__main__":
    main()
