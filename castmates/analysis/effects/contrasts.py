"""What is compared with what: a row per cohort, scene, baseline scene and member."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.core import once
from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.pairs import tally
from castmates.results.columns.contract import Columns
from castmates.results.columns.study import frame
from castmates.study import masks
from castmates.study.class_names import workload_of
from castmates.study.curves import mask_of
from castmates.study.mitigations import with_place
from castmates.study.scenes import has_share, placebo_cpus, placebo_name, under
from castmates.study.schedule import stretch_of
from castmates.study.spec import UNMANAGED, Cohort, Mix, Partition, Plan

CONTRASTS: Columns = {
    "row": "int64",  # number of the table's row; equal where cohorts are pooled
    "mix": "str",
    "partition": "str",
    "lead_ways": "Int64",  # NA where the partition gives the lead none of its own ways
    "baseline": "str",  # alone, placebo; under a partition also placebo@mask, unmanaged
    "member": "str",
    "role": "str",
    "lead": "str",
    "antagonists": "str",
    "cohort": "str",
    "scene": "str",
    "baseline_scene": "str",
    "control": "str",  # "" for an effect
    "across_stretches": "bool",  # the two scenes do not alternate, because masks change between them
}

# What makes two contrasts of different cohorts the same row.
_ROW = ["mix", "partition", "baseline", "member", "control"]

AGAIN, POSITIVE, NEGATIVE = "A/A", "positive", "negative"
PLACEBO_AT_MASK, WITHOUT_PARTITION = "placebo@mask", "unmanaged"
# Beside a placebo a busy antagonist's turbo and power are spent either way: against alone even compute may lose,
# and a loss that only shows a busy core would pass for one in cache or memory.
_CONTROL_BASELINE = "placebo"


@once
def mix_contrasts(plan: Plan) -> pd.DataFrame:
    """Every co-run and partition of the plan's active mixes against its baselines, in the order of the plan."""
    cohorts = _cohorts_of_mixes(plan)
    tried: dict[tuple[str, ...], list[str]] = {}  # members -> the mixes that try partitions on them
    for mix in plan.mixes:
        tried.setdefault((mix.lead, *mix.antagonists), []).extend([mix.identity] if mix.partitions else [])

    def of(mix: Mix) -> Iterator[dict[str, Any]]:
        if mix.partitions:
            return _under_partitions(mix, cohorts)
        if not mix.antagonists:
            return iter(())  # the lead alone loses to nobody
        # A cohort that tries partitions on the mix measures it without them too.
        return _unmanaged(mix, [mix.identity, *tried[mix.lead, *mix.antagonists]], cohorts)

    return _numbered(contrast for mix in plan.mixes for contrast in of(mix))


def control_contrasts(plan: Plan) -> pd.DataFrame:
    """The second `alone` scene of each lead against its first, the study's own leads first; then the controls."""
    ours = own_leads(plan)
    cohorts = sorted(plan.cohorts, key=lambda cohort: cohort.lead.name not in ours)
    of_mixes = _cohorts_of_mixes(plan)
    known = (
        {**contrast, "control": control.kind}
        for control in plan.controls
        for contrast in _unmanaged(control.mix, [control.mix.identity], of_mixes)
        if contrast["role"] == "lead" and contrast["baseline"] == _CONTROL_BASELINE
    )
    return _numbered(chain(_again(plan, cohorts), known))


def own_leads(plan: Plan) -> set[str]:
    """The members that the study is about; other leads play only in its controls."""
    return {mix.lead for mix in plan.mixes}


def partitions_of(mix: Mix) -> list[str]:
    """The names of a mix's partitions, or that there is none."""
    return [partition.name for partition in mix.partitions] or [UNMANAGED]


def workloads_of(members: pd.Series) -> pd.Series:
    """The workloads of a column of members: unlike the column `workload`, it carries their class of nodes."""
    return members.map({name: workload_of(name) for name in members.unique()})


def _cohorts_of_mixes(plan: Plan) -> dict[str, list[tuple[Cohort, str]]]:
    """By identity: the cohorts that have a mix, and the name it goes by there."""
    by_identity: dict[str, list[tuple[Cohort, str]]] = {}
    for cohort in plan.cohorts:
        for mix in cohort.mixes:
            by_identity.setdefault(mix.identity, []).append((cohort, mix.name))
    return by_identity


def _unmanaged(
    mix: Mix, identities: Iterable[str], cohorts: Mapping[str, list[tuple[Cohort, str]]]
) -> Iterator[dict[str, Any]]:
    """The co-run without a partition, in all cohorts that have it."""
    having = {cohort.id: (cohort, name) for identity in identities for cohort, name in cohorts.get(identity, [])}
    for cohort, name in having.values():
        yield from _of_scene(mix, cohort, f"corun:{name}", _baselines(mix, cohort, name))


def _under_partitions(mix: Mix, cohorts: Mapping[str, list[tuple[Cohort, str]]]) -> Iterator[dict[str, Any]]:
    """The co-run under each partition, or the lead alone under it, in all cohorts that have it."""
    for cohort, name in cohorts.get(mix.identity, []):
        for partition in mix.partitions:
            if mix.antagonists:
                scene, baselines = f"corun:{name}", _baselines(mix, cohort, name, partition)
            else:
                scene, baselines = "alone", [(mix.lead, "lead", "alone", "alone")]
            yield from _of_scene(mix, cohort, scene, baselines, partition)


def _baselines(
    mix: Mix, cohort: Cohort, name: str, partition: Partition | None = None
) -> list[tuple[str, str, str, str]]:
    """Member, role, baseline, and the scene that is the baseline; the mix goes by this name in the cohort."""
    placebo = placebo_name(placebo_cpus(mix, {member.name: member for member in cohort.members}))
    baselines = [(mix.lead, "lead", "alone", "alone"), (mix.lead, "lead", "placebo", placebo)]
    if partition is not None:
        if has_share(partition, mix.lead):
            baselines.append((mix.lead, "lead", PLACEBO_AT_MASK, under(placebo, partition.name)))
        baselines.append((mix.lead, "lead", WITHOUT_PARTITION, f"corun:{name}"))
    baselines += [(member, "antagonist", "alone", f"antagonist-alone:{member}") for member in mix.antagonists]
    measured = {scene.name for scene in cohort.scenes}
    return [each for each in baselines if each[-1] in measured]


def _again(plan: Plan, cohorts: Iterable[Cohort]) -> Iterator[dict[str, Any]]:
    for cohort in cohorts:
        for scene in cohort.scenes:
            if scene.kind == "alone-again" and any(mix.identity in plan.wanted for mix in cohort.mixes):
                yield {
                    "mix": "",
                    "partition": scene.partition,
                    "lead_ways": None,
                    "baseline": "alone",
                    "member": cohort.lead.name,
                    "role": "lead",
                    "lead": workload_of(cohort.lead.name),
                    "antagonists": "",
                    "cohort": cohort.id,
                    "scene": scene.name,
                    "baseline_scene": "alone",
                    "control": AGAIN,
                    "across_stretches": False,
                }


def _of_scene(
    mix: Mix,
    cohort: Cohort,
    scene: str,
    baselines: Iterable[tuple[str, str, str, str]],
    partition: Partition | None = None,
) -> Iterator[dict[str, Any]]:
    name = UNMANAGED if partition is None else partition.name
    stretches = stretch_of(cohort)
    for member, role, baseline, baseline_scene in baselines:
        yield {
            "mix": mix.name,
            "partition": name,
            "lead_ways": _lead_ways(mix, partition),
            "baseline": baseline,
            "member": member,
            "role": role,
            "lead": workload_of(mix.lead),
            "antagonists": with_place("+".join(workload_of(name) for name in mix.antagonists), mix.name),
            "cohort": cohort.id,
            "scene": under(scene, name),
            "baseline_scene": baseline_scene,
            "control": "",
            "across_stretches": stretches.get(under(scene, name)) != stretches.get(baseline_scene),
        }


def _lead_ways(mix: Mix, partition: Partition | None) -> int | None:
    """How many ways the partition gives the lead; None where it has all."""
    shares = {share.member: share for share in partition.shares} if partition is not None else {}
    mask = mask_of(shares.get(mix.lead))
    return None if mask is None else masks.popcount(mask)


def _numbered(contrasts: Iterable[dict[str, Any]]) -> pd.DataFrame:
    rows: dict[tuple[str, ...], int] = {}
    keyed = ((tuple(contrast[key] for key in _ROW), contrast) for contrast in contrasts)
    table = frame([{"row": rows.setdefault(key, len(rows)), **contrast} for key, contrast in keyed], CONTRASTS)
    return table.assign(across_stretches=table.groupby("row")["across_stretches"].transform("any"))


# How often slices and windows of a scene were rejected, and whether that may have biased its effect.

# Decided beforehand: rejected more often than the baseline by Fisher's exact test, and by enough to matter.
BIAS_LEVEL = 0.05
WINDOW_POINTS = 0.05
SLICE_POINTS = 0.02  # where the ledger sees some of what strikes a scene's slices, there may be more that it misses

Flags = npt.NDArray[np.bool_]


def rejection_columns(counts: pd.DataFrame) -> dict[str, Floats | Flags]:
    """`rejection_rate`, `baseline_rejection_rate` and `possibly_biased`, from the counts of `tally`."""
    kept, lost, alone = (_both(counts, f"slices_{name}") for name in ("kept", "lost", "lost_alone"))
    valid, rejected, spoilt = (_both(counts, f"windows_{name}") for name in ("valid", "rejected", "spoilt"))
    rate = _share(lost, kept + lost)
    # Slices that go with their window are one event and not many: these windows are tested by themselves.
    biased = _more_often(alone, kept + alone, SLICE_POINTS) | _more_often(spoilt, valid + rejected, WINDOW_POINTS)
    return {"rejection_rate": rate[0], "baseline_rejection_rate": rate[1], "possibly_biased": biased}


def possibly_biased(windows: pd.DataFrame, contrasts: pd.DataFrame) -> pd.Series:
    """The flag of every row and platform that has windows."""
    counts = tally(windows, contrasts)
    return pd.Series(rejection_columns(counts)["possibly_biased"], index=counts.index, name="possibly_biased")


def _both(counts: pd.DataFrame, name: str) -> Floats:
    """This count of the scenes, and below it that of their baselines."""
    return np.stack([counts[f"{prefix}{name}"].to_numpy(dtype=float) for prefix in ("", "baseline_")])


def _more_often(lost: Floats, whole: Floats, points: float) -> Flags:
    here, base = _share(lost, whole)
    rounding = 1e-9  # 0.15 - 0.10 is a little less than 0.05
    more = here - base >= points - rounding
    for place in np.flatnonzero(more):
        more[place] = _chance(*lost[:, place], *whole[:, place]) < BIAS_LEVEL
    return np.asarray(more)


def _chance(here: float, base: float, of_here: float, of_base: float) -> float:
    """The chance that so many of all the rejected ones fall on the scene, or more, if they fall anywhere alike.

    It is the tail of a hypergeometric distribution; scipy.stats has it too, and takes half a second to import.
    """
    from scipy.special import gammaln

    count = np.arange(here, min(of_here, here + base) + 1)

    def log_ways(whole: float | Floats, part: float | Floats) -> Floats:
        return np.asarray(gammaln(whole + 1) - gammaln(part + 1) - gammaln(whole - part + 1))

    own, others = log_ways(of_here, count), log_ways(of_base, here + base - count)
    return float(np.exp(own + others - log_ways(of_here + of_base, here + base)).sum())


def _share(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))
