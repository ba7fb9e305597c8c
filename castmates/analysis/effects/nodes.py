"""Plan and windows -> what each node of a class came to: its effects, whether nodes differ, and its own controls."""

import numpy as np
import pandas as pd

from castmates.analysis.effects.between_nodes import between_nodes, hosts_of
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.controls import estimate_controls
from castmates.analysis.effects.verdicts import (
    EFFECT_LEVEL,
    INSENSITIVE,
    NODES_ALIKE,
    NODES_DIFFER,
    NOT_COMPARED,
    UNSTABLE,
    control_verdicts,
)
from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.statistics.intervals import columns_of, holm, lost, over_launches, per_launch, ratio
from castmates.analysis.statistics.pairs import pair, planned
from castmates.results.columns.nodes import NODES
from castmates.results.columns.study import frame
from castmates.study.spec import UNMANAGED, Plan

FAILED = (UNSTABLE, INSENSITIVE)  # of a node's own controls


def estimate_nodes(plan: Plan, windows: pd.DataFrame, margin: float) -> pd.DataFrame:
    """A row per node and row of the effects, and per node and control; none where all was measured on one node."""
    own = planned(windows, plan)
    if own["host"].nunique() < 2:
        return frame([], NODES)
    processors = own.drop_duplicates("host").set_index("host")["processor"]
    table = pd.concat([_effects(plan, own), _controls(plan, own, margin)], ignore_index=True)
    table = table.assign(study=plan.study, machine=plan.machine, processor=table["host"].map(processors))
    return table[list(NODES)].astype(dict(NODES))


def failing(nodes: pd.DataFrame) -> pd.DataFrame:
    """The controls that failed on a node."""
    return nodes[(nodes["control"] != "") & nodes["verdict"].isin(FAILED)]


def _effects(plan: Plan, own: pd.DataFrame) -> pd.DataFrame:
    contrasts = mix_contrasts(plan)
    values = per_launch(pair(own, contrasts), ROW)
    hosts = hosts_of(own)
    of_node = values.reset_index()
    of_node["host"] = hosts.reindex(pd.MultiIndex.from_frame(of_node[LAUNCH])).to_numpy()
    by = [*ROW, "host"]
    table = over_launches(of_node.set_index([*by, *LAUNCH]), by).drop(columns="p_value").reset_index()
    table = table.merge(between_nodes(values, hosts, ROW)[["nodes_p"]].reset_index(), on=ROW)
    table = table.merge(contrasts.drop_duplicates("row"), on="row").rename(columns={"nodes_p": "p_value"})
    # One test for all nodes of a row: it counts once in its family.
    tests = table.drop_duplicates(ROW)
    partitioned = tests["partition"] != UNMANAGED
    adjusted = tests.groupby(["platform", "role", "baseline", partitioned])["p_value"].transform(holm)
    table = table.merge(tests[ROW].assign(p_holm=adjusted), on=ROW)
    p_holm = table["p_holm"].to_numpy(dtype=float)
    verdict = np.select([np.isnan(p_holm), p_holm < EFFECT_LEVEL], [NOT_COMPARED, NODES_DIFFER], default=NODES_ALIKE)
    return table.assign(**_losses(table), verdict=verdict, control="")


def _controls(plan: Plan, own: pd.DataFrame, margin: float) -> pd.DataFrame:
    """The controls of each node by themselves; all that must not differ, on any node, are judged together."""
    tables = [
        estimate_controls(plan, part, margin).assign(host=host) for host, part in own.groupby("host", observed=True)
    ]
    table = pd.concat(tables, ignore_index=True)
    table = table[table["launches"] > 0]
    table["p_holm"] = table.groupby(["platform", table["control"] == "positive"])["p_value"].transform(holm)
    table[["mean", "low", "high"]] = np.log(table[["ratio", "ratio_low", "ratio_high"]].astype(float))
    table["verdict"] = control_verdicts(table, margin)
    texts = {"antagonists": "", "member": "", "role": "lead", "partition": UNMANAGED}
    return table.assign(**_losses(table), **texts)


def _losses(table: pd.DataFrame) -> dict[str, pd.Series]:
    return columns_of(table, "slowdown", ratio) | columns_of(table, "loss_pct", lost, ends="loss")
