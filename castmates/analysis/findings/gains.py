"""The windows of a trial -> what a change of a lead gives, alone and beside its antagonists.

The lead as it is and the changed one run in launches of their own, whose orders are mixed: launches are the sample, and
the difference of the means of two groups of launches has Welch's interval.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, of_each_launch
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.effects.verdicts import effect_verdicts
from castmates.analysis.statistics.intervals import columns_of, gained, holm
from castmates.analysis.statistics.welch import welch
from castmates.results.columns.findings import GAINS
from castmates.results.columns.study import frame
from castmates.study.class_names import without_class

_SCENE = ["beside", "platform"]
_COUNTS = ["mean", "variance", "launches"]


def gains(
    windows: pd.DataFrame, lead: str, changed: str, work: float, beside: Mapping[str, str], margin: float
) -> pd.DataFrame:
    """A row alone and one beside each antagonist; `beside` has the antagonists of each mix by its name. Names of
    leads are without their class of nodes: a trial runs on one of them.

    `work` is how many times the work of a step that the changed lead does in one of its own.
    """
    windows = windows.reset_index(drop=True)  # of several launches, each with its own
    own, other = (_launches(windows, name, beside) for name in (lead, changed))
    shared = own.index.intersection(other.index)
    if shared.empty:
        return frame([], GAINS)
    own, other = own.loc[shared], other.loc[shared]
    difference = welch(own, other.assign(mean=other["mean"] + np.log(work)))
    table = pd.concat([difference, own.add_prefix("own_"), other.add_prefix("other_")], axis=1).reset_index()
    table["p_holm"] = holm(table["p_value"])
    fewest = np.minimum(table["own_launches"], table["other_launches"])
    slower = {"mean": -table["mean"], "low": -table["high"], "high": -table["low"], "launches": fewest}
    verdict = effect_verdicts(table.assign(**slower), margin)
    columns = {
        "study": windows["study"].iloc[0] if "study" in windows else "",
        "lead": lead,
        "changed": changed,
        "unit": _unit(windows, lead),
        "rate": np.exp(table["own_mean"]),
        "changed_rate": np.exp(table["other_mean"]),
        "work": work,
        "launches": table["own_launches"],
        "changed_launches": table["other_launches"],
        "verdict": verdict,
    }
    columns |= columns_of(table, "gain_pct", gained, ends="gain")
    return declared(table.assign(**columns).sort_values("beside"), GAINS)


def _launches(windows: pd.DataFrame, name: str, beside: Mapping[str, str]) -> pd.DataFrame:
    """Of each scene: mean and variance over launches of the logarithm of the rate, and how many launches there are."""
    is_lead = workloads_of(windows["member"]).map(without_class) == name
    scenes = windows["scene"].map({"alone": ""} | {f"corun:{mix}": others for mix, others in beside.items()})
    kept = windows[windows["valid"] & is_lead & (windows["rate"] > 0) & scenes.notna()]
    logs = kept.assign(log=np.log(kept["rate"].to_numpy(dtype=float)), beside=scenes[kept.index].astype("str"))
    means = of_each_launch(logs, _SCENE, ["log"])
    return means.groupby(_SCENE)["log"].agg(["mean", "var", "count"]).set_axis(_COUNTS, axis=1)


def _unit(windows: pd.DataFrame, lead: str) -> str:
    units = windows.loc[windows["workload"] == lead, "unit"]
    return str(units.iloc[0]) if len(units) else ""
