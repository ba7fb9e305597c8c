"""Plan and windows -> what each node of a class came to: its effects, whether nodes differ, and its own controls."""

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast, adjusted, between_nodes, declared, losses_of
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.effects import estimate_controls
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
from castmates.analysis.statistics.intervals import over_launches
from castmates.analysis.statistics.pairs import planned
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
    return declared(table.assign(processor=table["host"].map(processors)), NODES, plan)


def failing(nodes: pd.DataFrame) -> pd.DataFrame:
    """The controls that failed on a node."""
    return nodes[(nodes["control"] != "") & nodes["verdict"].isin(FAILED)]


def _effects(plan: Plan, own: pd.DataFrame) -> pd.DataFrame:
    contrast = Contrast(own, mix_contrasts(plan))
    of_node = contrast.launches.reset_index()
    of_node["host"] = contrast.hosts.reindex(pd.MultiIndex.from_frame(of_node[LAUNCH])).to_numpy()
    by = [*ROW, "host"]
    table = over_launches(of_node.set_index([*by, *LAUNCH]), by).drop(columns="p_value").reset_index()
    tested = between_nodes(contrast.launches, contrast.hosts, ROW)[["nodes_p"]].reset_index()
    table = table.merge(tested.rename(columns={"nodes_p": "p_value"}), on=ROW)
    table = table.merge(contrast.contrasts.drop_duplicates("row"), on="row")
    # One test for all nodes of a row: it counts once in its family.
    tests = table.drop_duplicates(ROW)
    p = adjusted(tests, "platform", "role", "baseline", tests["partition"] != UNMANAGED)
    table = table.merge(tests[ROW].assign(p_holm=p), on=ROW)
    p_holm = table["p_holm"].to_numpy(dtype=float)
    verdict = np.select([np.isnan(p_holm), p_holm < EFFECT_LEVEL], [NOT_COMPARED, NODES_DIFFER], default=NODES_ALIKE)
    return table.assign(**losses_of(table), verdict=verdict, control="")


def _controls(plan: Plan, own: pd.DataFrame, margin: float) -> pd.DataFrame:
    """The controls of each node by themselves; all that must not differ, on any node, are judged together."""
    tables = [
        estimate_controls(plan, part, margin).assign(host=host) for host, part in own.groupby("host", observed=True)
    ]
    table = pd.concat(tables, ignore_index=True)
    table = table[table["launches"] > 0]
    table["p_holm"] = adjusted(table, "platform", table["control"] == "positive")
    table[["mean", "low", "high"]] = np.log(table[["ratio", "ratio_low", "ratio_high"]].astype(float))
    table["verdict"] = control_verdicts(table, margin)
    texts = {"antagonists": "", "member": "", "role": "lead", "partition": UNMANAGED}
    return table.assign(**losses_of(table), **texts)
