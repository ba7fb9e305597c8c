"""A study's plan and windows -> what each launch shows of every effect, under names that other studies know too."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from castmates.analysis.core import Contrast
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.keys import LAUNCH, ROW
from castmates.study.class_names import workload_of
from castmates.study.spec import Plan

# What makes rows of two studies the same question, the platform and what the partition is called apart.
QUESTION = ["mix", "lead", "antagonists", "role", "member", "baseline"]
LOGS = {"loss": "difference", "baseline": "log_rate_baseline", "scene": "log_rate"}  # of a launch: mean over its rounds


def plain_members(plan: Plan) -> dict[tuple[str, str], str]:
    """Mix and member -> the member without its CPUs; a second antagonist of the same program is `stream#2`."""
    plain = {}
    for mix in plan.mixes:
        seen: Counter[str] = Counter()
        plain[mix.name, mix.lead] = workload_of(mix.lead)
        for name in mix.antagonists:
            workload = workload_of(name)
            seen[workload] += 1
            plain[mix.name, name] = workload if seen[workload] == 1 else f"{workload}#{seen[workload]}"
    return plain


def questions(plan: Plan) -> pd.DataFrame:
    """Every effect that the plan asks for, by the number of its row: members by their plain names."""
    rows = mix_contrasts(plan).drop_duplicates("row").set_index("row")
    names = plain_members(plan)
    plain = [names[mix, member] for mix, member in zip(rows["mix"], rows["member"], strict=True)]
    return rows.assign(member=plain)[[*QUESTION, "partition", "lead_ways"]]


def launch_means(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """By row, platform and launch: loss, and the log rates of baseline and scene, over the rounds that have both."""
    pairs = Contrast.of(plan, windows, mix_contrasts(plan)).pairs
    pairs = pairs.assign(log_rate=pairs["log_rate_baseline"] - pairs["difference"])
    asked = {name: (column, "mean") for name, column in LOGS.items()}
    by = [*ROW, *LAUNCH]
    return pairs.groupby(by, observed=True).agg(rounds=("difference", "size"), **asked)


def spread(launches: pd.DataFrame, by: Sequence[str] = ("row", "platform")) -> pd.DataFrame:
    """Launches -> `launches`, `rounds`, and mean and variance over launches of each logarithm (`loss_mean` …)."""
    asked: dict[str, tuple[str, str]] = {"launches": ("loss", "size"), "rounds": ("rounds", "sum")}
    for name in LOGS:
        asked |= {f"{name}_mean": (name, "mean"), f"{name}_variance": (name, "var")}
    return launches.groupby(list(by), observed=True).agg(**asked)


def units(windows: pd.DataFrame) -> dict[str, str]:
    """Workload -> what one unit of its progress is called."""
    known = windows.drop_duplicates(["workload", "unit"])
    return {str(name): str(unit) for name, unit in zip(known["workload"], known["unit"], strict=True)}
