"""How much of the memory's bandwidth the antagonists of a co-run took, by their own count.

The kernels `stream` and `bandwidth` report bytes that they read and wrote, so their rates are a bandwidth. The peak was
measured by the same program in the same mode: what the processor moves besides (lines fetched before they are written)
is in neither, or in both.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast
from castmates.analysis.keys import ROW
from castmates.study.last_level import NATIVE
from castmates.study.memory_peak import MODES, Peak
from castmates.study.spec import Member, Plan

UNIT_BYTES: Mapping[str, int] = {"stream": 1 << 20, "bandwidth": 1 << 10}
GB_S, PEAK_PCT = "antagonists_gb_s", "antagonists_peak_pct"
_SCENE = ["platform", "cohort", "scene"]


def bandwidth_columns(plan: Plan, contrast: Contrast, table: pd.DataFrame, peak: Peak | None) -> dict[str, pd.Series]:
    """Of each row of `table`: 1e9 bytes a second, and per cent of the peak; means over launches."""
    moving = {
        (cohort.id, member.name): member for cohort in plan.cohorts for member in cohort.members if moves_bytes(member)
    }
    windows = contrast.windows
    beside = windows[windows["valid"] & (windows["role"] == "antagonist") & (windows["kind"] == "corun")]
    keys = list(zip(beside["cohort"], beside["member"], strict=True))
    own = beside[np.array([key in moving for key in keys], dtype=bool)]
    if own.empty:
        nothing = pd.Series(np.nan, index=table.index)
        return {GB_S: nothing, PEAK_PCT: nothing.copy()}
    members = [moving[key] for key in keys if key in moving]
    per_second = own["rate"] * np.array([UNIT_BYTES[member.command[0]] for member in members])
    share = per_second / np.array([_highest(member.command, peak) for member in members])
    launches = own.assign(gb_s=per_second / 1e9, peak_pct=100 * share)
    means = launches.groupby([*_SCENE, "launch", "member"], observed=True)[["gb_s", "peak_pct"]].mean()
    # A member without a peak leaves the sum without one.
    lacking = means.isna().groupby([*_SCENE, "launch"], observed=True).any()
    scenes = means.groupby([*_SCENE, "launch"], observed=True).sum().mask(lacking).reset_index()
    wanted = contrast.contrasts[["row", "cohort", "scene"]].drop_duplicates()
    rows = wanted.merge(scenes, on=["cohort", "scene"]).groupby(ROW)[["gb_s", "peak_pct"]].mean()
    found = rows.reindex(pd.MultiIndex.from_frame(table[ROW]))
    return {
        name: pd.Series(found[column].to_numpy(dtype=float), index=table.index)
        for name, column in ((GB_S, "gb_s"), (PEAK_PCT, "peak_pct"))
    }


def _highest(command: Sequence[str], peak: Peak | None) -> float:
    """The peak of the mode that a member streams in; NaN where that was not measured."""
    mode = mode_of(command)
    return peak.highest(mode) if peak is not None and mode in MODES else float("nan")


def mode_of(command: Sequence[str]) -> str:
    """How a member goes through memory: a mode of `stream`; "" where it is another way."""
    options = dict(pairwise(command))
    if command[0] == "stream":
        return options.get("--mode", "triad")
    return "read" if options.get("--writes", "0") in ("0", "0%") else ""


def moves_bytes(member: Member) -> bool:
    """Whether a member's own progress is a bandwidth; a program of others may have the name of ours."""
    return member.environment == NATIVE and bool(member.command) and member.command[0] in UNIT_BYTES
