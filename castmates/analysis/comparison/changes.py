"""Tables of a study -> its changes, as `details` compares them: what is the same question in another study."""

import pandas as pd

from castmates.analysis.comparison.details import POINTS, RATIO, Changes
from castmates.analysis.comparison.launches import plain_members
from castmates.analysis.effects.system import ALONE
from castmates.analysis.explanations.resources import MEMBER
from castmates.study.spec import Plan

CORUN = "corun"


def counter_changes(plan: Plan, resources: pd.DataFrame) -> pd.DataFrame:
    """What members, and packages, used beside others against alone."""
    rows = resources[(resources["scene"] == CORUN) & (resources["baseline"] == ALONE)]
    whose = rows["scope"].where(rows["scope"] != MEMBER, "")
    item = rows["metric"] + whose.map(lambda scope: f" of {scope}" if scope else "")
    return _changes(plan, rows.assign(item=item, launches=rows["launches"]))


def phase_changes(plan: Plan, phases: pd.DataFrame) -> pd.DataFrame:
    """By how much longer each phase of a lead's step takes, in points of the step alone."""
    rows = phases[(phases["baseline"] == ALONE) & (phases["antagonists"] != "")]
    ends = {f"change{end}": rows[f"loss{loss}"] for end, loss in (("", "_pct"), ("_low", "_low"), ("_high", "_high"))}
    return _changes(plan, rows.assign(item=rows["phase"], scale=POINTS, role="lead", launches=rows["launches"], **ends))


def quantile_changes(plan: Plan, latency: pd.DataFrame) -> pd.DataFrame:
    """How many times as long steps and requests take beside others."""
    rows = latency[(latency["kind"] == CORUN) & (latency["baseline"] == ALONE) & latency["ratio"].notna()]
    ends = {f"change{end}": rows[f"ratio{end}"] for end in ("", "_low", "_high")}
    item = rows["quantile"] + " of a " + rows["what"]
    return _changes(plan, rows.assign(item=item, scale=RATIO, launches=rows["launches_paired"], **ends))


def operation_changes(plan: Plan, effects: pd.DataFrame) -> pd.DataFrame:
    """How many times as long each group of operations takes of a lead's step beside others."""
    if effects.empty:
        return pd.DataFrame(columns=list(Changes.COLUMNS))
    ends = {f"change{end}": effects[f"ratio{end}"] for end in ("", "_low", "_high")}
    return _changes(plan, effects.assign(item=effects["group"], scale=RATIO, role="lead", **ends))


def _changes(plan: Plan, rows: pd.DataFrame) -> pd.DataFrame:
    """With members by their plain names, each question once: of several processors that of most launches."""
    names = plain_members(plan)
    member = [names.get((mix, name), name) for mix, name in zip(rows["mix"], rows["member"], strict=True)]
    table = rows.assign(member=member)[list(Changes.COLUMNS)].sort_values("launches", ascending=False, kind="stable")
    once = table.drop_duplicates(["mix", "member", "role", "item", "partition", "platform"])
    return once.sort_index().reset_index(drop=True)
