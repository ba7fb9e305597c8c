"""Plan and windows -> the tables of effects and of controls, with what stands beside an effect in its row.

The controls are what must not differ (A/A, negative) and what must (positive). Where a loss still grows within slices,
these are too short for it, and it is underestimated. The kernels `stream` and `bandwidth` report bytes that they read
and wrote, so that their rates are a bandwidth. The peak was measured by the same program in the same mode: what the
processor moves besides (lines fetched before they are written) is in neither, or in both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from castmates.analysis.core import NODES as BY_NODE
from castmates.analysis.core import (
    Contrast,
    adjusted,
    between,
    declared,
    losses_of,
    of_each_launch,
    over_levels,
    sessions_of,
    times_of,
    within_launch,
)
from castmates.analysis.effects.contrasts import (
    POSITIVE,
    control_contrasts,
    mix_contrasts,
    own_leads,
    rejection_columns,
)
from castmates.analysis.effects.verdicts import (
    EFFECT_LEVEL,
    INSENSITIVE,
    NODES_ALIKE,
    NODES_DIFFER,
    NOT_COMPARED,
    UNSTABLE,
    control_verdicts,
    effect_verdicts,
)
from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.partitions.held import States, states
from castmates.analysis.statistics.intervals import (
    FEWEST_LAUNCHES,
    columns_of,
    estimate,
    gained,
    lost,
    more_than,
    more_than_none,
    over_launches,
    ratio,
)
from castmates.analysis.statistics.pairs import planned
from castmates.analysis.statistics.welch import cohort_means, summed
from castmates.results.columns.nodes import NODES
from castmates.results.columns.study import CONTROLS, EFFECTS, MARGINS, frame
from castmates.study.last_level import NATIVE
from castmates.study.memory_peak import MODES, Peak
from castmates.study.scenes import service_members
from castmates.study.spec import UNMANAGED, Member, Plan

LEVEL = 0.05
LEAST_PCT = 1.0  # of the slowdown: less is no reason for longer slices
LATE_CLOCKS = 0.02  # of a member's time: by so much its CPU time may be wrong, all windows together
LEAST_POINTS = 0.5  # of the rate alone: fewer for other programs are no reason for another machine
UNIT_BYTES: Mapping[str, int] = {"stream": 1 << 20, "bandwidth": 1 << 10}
GB_S, PEAK_PCT = "antagonists_gb_s", "antagonists_peak_pct"
_SCENE = ["platform", "cohort", "scene"]
LATE = "p99 of latency"  # of an open-loop service, which is judged by it


@dataclass(frozen=True)
class Growth:
    """How much more the leads of a platform lose in the later halves of slices, all losses against alone together."""

    platform: str
    launches: int
    pct: float  # of the slowdown
    low: float
    high: float

    @property
    def bias(self) -> float:
        """How many points too small a loss may be: a rate over both halves misses half of what they differ by."""
        return max(self.high, 0.0) / 2


def pooled_growth(plan: Plan, windows: pd.DataFrame) -> list[Growth]:
    """The mean over launches, each of which gives one value, the mean over its losses; from three launches on.

    Rows share their launches and `alone` scene, so only launches are independent. Together they show a growth that
    is too small to be seen in any one of them.
    """
    contrasts = mix_contrasts(plan)
    contrasts = contrasts[(contrasts["role"] == "lead") & (contrasts["baseline"] == "alone")]
    of_rows = _of_halves(Contrast.of(plan, windows, contrasts)).by_launch(["row"])
    found = estimate(of_each_launch(of_rows, ["platform"], ["difference"]), ["platform"])
    found = found[found["launches"] >= FEWEST_LAUNCHES]
    ends = found[["mean", "low", "high"]].apply(gained).to_numpy().tolist()
    return [
        Growth(platform, int(launches), *own)
        for platform, launches, own in zip(found.index, found["launches"], ends, strict=True)
    ]


def _of_halves(contrast: Contrast) -> Contrast:
    """The same of the ratio of the rates in the halves of slices."""
    return replace(contrast, windows=contrast.windows.assign(rate=contrast.windows["later"]))


def growth_columns(contrast: Contrast, table: pd.DataFrame) -> dict[str, pd.Series]:
    """Of each row of `table`: how much more slices lose in their later halves than in their earlier ones."""
    found = _in_rows_of(table, _of_halves(contrast))
    growth = columns_of(found, "growth_pct", gained, ends="growth")
    # Only growth is of interest, and every row of a platform is a chance to see some where there is none.
    certain = adjusted(table.assign(p_value=more_than_none(found)), "platform") < LEVEL
    return growth | {"still_growing": certain & (growth["growth_pct"] >= LEAST_PCT)}


# Who else ran on a member's CPUs. A neighbour leaves the rest of the machine fewer idle CPUs, so that what ran for free
# beside the lead alone runs on the lead's CPU in the co-run: lost, but not to the neighbour.


def taken(windows: pd.DataFrame, cpus: pd.Series) -> pd.Series:
    """The share of its `cpus` that a member wanted and others had; NaN where it was not read.

    Threads of its own may wait for each other: of a member that waited longer than it lacked a CPU, all in all, it is
    what it lacked. All of its windows go by one measure, because the clock of a process is late by up to a tick: the
    smaller one of each window would be too small.
    """
    whole = cpus * windows["read_s"]
    both = pd.DataFrame({"waited": windows["waited_s"], "lacked": whole - windows["cpu_s"], "whole": whole})
    sums = both.where(both.notna().all(axis=1)).groupby(windows["member"].to_numpy()).transform("sum")
    queues = sums["waited"] > sums["lacked"] + LATE_CLOCKS * sums["whole"]
    return both["waited"].mask(queues, both["lacked"]).where(both["lacked"].notna()) / whole.where(whole > 0)


def cpu_columns(plan: Plan, contrast: Contrast, table: pd.DataFrame) -> tuple[dict[str, pd.Series], pd.Series]:
    """Of each row of `table`: the loss per second of CPU, and what others' share explains; the p-value of that."""
    windows, members = contrast.windows, [member for cohort in plan.cohorts for member in cohort.members]
    count = {member.name: float(len(member.cpus)) for member in members}
    left = (1 - taken(windows, windows["member"].map(count).astype(float))).where(windows["rate"].notna())
    per_cpu = windows["rate"] * windows["read_s"] / windows["cpu_s"].where(windows["cpu_s"] > 0)
    found, others = (
        _in_rows_of(table, replace(contrast, windows=windows.assign(rate=rate))) for rate in (per_cpu, left)
    )
    late, held_back = list(service_members(plan)), _held_back(plan)
    found = found.mask(table["member"].isin(late))  # work is not what a service is judged by
    places = table[["mix", "partition", "member"]].itertuples(index=False, name=None)
    others = others.mask(pd.Series([place in held_back for place in places], index=table.index, dtype=bool))
    columns = columns_of(found, "loss_per_cpu_pct", lost, ends="loss_per_cpu")
    return columns | columns_of(others, "others_points", lost, ends="others"), others["p_value"]


def _in_rows_of(table: pd.DataFrame, contrast: Contrast) -> pd.DataFrame:
    """The estimates of a contrast in the rows of `table`, over nodes or sessions where several measured."""
    found = over_levels(contrast.estimates().reset_index(), contrast.levels, ROW).set_index(ROW)
    found = found[["mean", "low", "high", "p_value"]].reindex(pd.MultiIndex.from_frame(table[ROW]))
    return found.set_axis(table.index)


def _held_back(plan: Plan) -> set[tuple[str, str, str]]:
    """By mix and partition the members that wait for their own mix, or for the end of a quota."""
    cpus = {member.name: set(member.cpus) for cohort in plan.cohorts for member in cohort.members}
    found = set()
    for mix in plan.mixes:
        team = [name for name in (mix.lead, *mix.antagonists) if name in cpus]
        sharing = {one for one in team for other in team if one != other and cpus[one] & cpus[other]}
        for partition in mix.partitions or [None]:
            shares = partition.shares if partition is not None else ()
            names = sharing | {share.member for share in shares if share.quota is not None}
            found |= {(mix.name, partition.name if partition else UNMANAGED, name) for name in names}
    return found


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


def estimate_effects(
    plan: Plan,
    windows: pd.DataFrame,
    margin: float,
    level: float = EFFECT_LEVEL,
    held: States | None = None,
    peak: Peak | None = None,
) -> pd.DataFrame:
    """A row per active mix, partition, baseline, member and platform, also where nothing was measured yet.

    `held` is what the processor held under partitions, where that was read; `peak` is the memory bandwidth that was
    measured as the most of the machine.
    """
    contrast = Contrast.of(plan, windows, mix_contrasts(plan))
    table = contrast.rows_over_levels()
    table = table.assign(**growth_columns(contrast, table), **bandwidth_columns(plan, contrast, table, peak))
    # A study asks one question per baseline, and a separate one of its partitions, so that an added sweep does not
    # weigh on what is known without one; results of one platform are no test of another.
    family = ("platform", "role", "baseline", table["partition"] != UNMANAGED)
    tests = ("nodes_p", "sessions_p", "drift_p")
    table = table.assign(p_holm=adjusted(table, *family), **{f"{p}_holm": adjusted(table, *family, p=p) for p in tests})
    known = states(plan) if held is None else held
    per_cpu, others_p = cpu_columns(plan, contrast, table)
    proven = adjusted(table.assign(p_value=others_p), *family) < level
    table = table.assign(
        verdict=effect_verdicts(table, margin, level),
        held=[known.get(place, "") for place in zip(table["mix"], table["partition"], strict=True)],
        metric=np.where(table["member"].isin(list(service_members(plan))), LATE, "rate"),
        others_seen=proven & (per_cpu["others_points"] >= LEAST_POINTS),
        **per_cpu,
        **losses_of(table),
        **{f"hour_{end}": lost(table[f"sessions_another_{end}"]) for end in ("low", "high")},
        **within_launch(table),
        **rejection_columns(table),
    )
    return declared(table, EFFECTS, plan)


def by_session(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """What each mix's lead loses against alone without a partition, a row per session; `begin` is that of the session.

    Of one class of nodes.
    """
    contrasts = mix_contrasts(plan)
    wanted = (contrasts["role"] == "lead") & (contrasts["baseline"] == "alone") & (contrasts["partition"] == UNMANAGED)
    contrast = Contrast.of(plan, windows, contrasts[wanted])
    own = sessions_of(contrast.windows)
    table = _of_units(contrast, own, "session").merge(contrast.contrasts.drop_duplicates("row"), on="row")
    begins = times_of(contrast.windows).groupby(own).min()
    return table.assign(begin=table["session"].map(begins), **losses_of(table))


def _of_units(contrast: Contrast, units: pd.Series, name: str) -> pd.DataFrame:
    """The estimates of each row on each node, or in each session, by itself."""
    launches = contrast.launches.reset_index()
    launches[name] = units.reindex(pd.MultiIndex.from_frame(launches[LAUNCH])).to_numpy()
    by = [*ROW, name]
    return over_launches(launches.set_index([*by, *LAUNCH]), by).drop(columns="p_value").reset_index()


def estimate_controls(plan: Plan, windows: pd.DataFrame, margin: float) -> pd.DataFrame:
    """A row per control and platform; all that must not differ on a platform are judged together."""
    table = Contrast.of(plan, windows, control_contrasts(plan)).rows()
    positive = table["control"] == POSITIVE
    # To show a loss is another question than to show none: the positive control is a separate family. A loss that the
    # study would call none is no evidence that it sees losses: it has to be shown to exceed the margin.
    table["p_value"] = table["p_value"].where(~positive, more_than(table, np.log1p(margin)))
    table["p_holm"] = adjusted(table, "platform", positive)
    table = table.assign(
        verdict=control_verdicts(table, margin),
        study_lead=table["member"].isin(own_leads(plan)),
        **columns_of(table, "ratio", ratio),
        **within_launch(table),
    )
    return declared(table, CONTROLS, plan)


# The margins of the matrix lead × antagonist: how sensitive a lead is, and how contentious an antagonist.
#
# The geometric mean of a row or column of slowdowns, only where all of its cells were measured. The mixes of one cohort
# share their launches, so a launch gives one value, the mean over them; cohorts are independent within a session.

SENSITIVITY, CONTENTIOUSNESS = "sensitivity", "contentiousness"
BASELINES = ("alone", "placebo")
_CELL = ["baseline", "lead", "antagonists"]
_SIDES = {SENSITIVITY: ("lead", "antagonists"), CONTENTIOUSNESS: ("antagonists", "lead")}


def margins(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """A row per margin, lead or antagonist, baseline and platform; without a partition."""
    contrasts = mix_contrasts(plan)
    wanted = (contrasts["partition"] == UNMANAGED) & (contrasts["role"] == "lead") & (contrasts["antagonists"] != "")
    contrasts = contrasts[wanted & contrasts["baseline"].isin(BASELINES)]
    if contrasts.empty:
        return frame([], MARGINS)
    contrast = Contrast.of(plan, windows, contrasts)
    values = contrast.by_launch(_CELL).join(sessions_of(contrast.windows).rename("session"), on=LAUNCH)
    if values.empty:  # every round has a rejected window
        return frame([], MARGINS)
    tables = [_margin(name, who, other, contrasts, values) for name, (who, other) in _SIDES.items()]
    return declared(pd.concat(tables, ignore_index=True), MARGINS, plan)


def _margin(name: str, who: str, other: str, contrasts: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    by = ["baseline", who, "platform"]
    cells = values.groupby(by, observed=True)[other].nunique().rename("cells")
    sums = summed(cohort_means(values.rename(columns={"difference": "loss", other: "mix"}), by), by)
    table = cells.to_frame().join(sums.drop(columns="p_value")).reset_index()
    table["cells_of"] = table["baseline"].map(contrasts.groupby("baseline", observed=True)[other].nunique())
    table.loc[table["cells"] < table["cells_of"], ["mean", "low", "high"]] = np.nan
    return table.assign(margin=name, who=table[who], **losses_of(table))


# Plan and windows -> what each node of a class came to: its effects, whether nodes differ, and its own controls.

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
    table = _of_units(contrast, contrast.hosts, "host")
    tested = between(contrast.launches, contrast.hosts, BY_NODE, ROW)[["nodes_p"]].reset_index()
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
