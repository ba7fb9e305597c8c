"""A study's plan and windows -> what each launch shows of every effect, under names that other studies know too.

Partitions of two studies are the same question by name, and by what they give. Launches
that are in both are no independent sample of either.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast, adjusted, declared, sessions_of
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.stamps import MODELLED
from castmates.analysis.effects.verdicts import EFFECT_LEVEL, variant_verdicts
from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.statistics.intervals import FEWEST_UNITS, UNEVEN, columns_of, ratio
from castmates.analysis.statistics.welch import one_sample, welch
from castmates.results.columns.study import frame
from castmates.results.columns.variants import VARIANT_EFFECTS
from castmates.study import masks
from castmates.study.cache import Cache, rate_words
from castmates.study.class_names import named, without_class, workload_of
from castmates.study.curves import mask_of
from castmates.study.node_classes import cache_of
from castmates.study.spec import REST, UNMANAGED, Mix, Partition, Plan

# What makes rows of two studies the same question, the platform and what the partition is called apart.
QUESTION = ["mix", "lead", "antagonists", "role", "member", "baseline"]
LOGS = {"loss": "difference", "baseline": "log_rate_baseline", "scene": "log_rate"}  # of a launch: mean over its rounds
Gift = tuple[tuple[str, str], ...]  # plain member -> its share in words; who has everything is not there
Place = tuple[str, str]  # mix and partition
SAME, DIFFER = "same", "differ"
Record = Mapping[str, Any]


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
    """By row, platform and launch: loss, and the log rates of baseline and scene, over the rounds that have both.

    With the `session` of each launch.
    """
    contrast = Contrast.of(plan, windows, mix_contrasts(plan))
    pairs = contrast.pairs
    pairs = pairs.assign(log_rate=pairs["log_rate_baseline"] - pairs["difference"])
    asked = {name: (column, "mean") for name, column in LOGS.items()}
    means = pairs.groupby([*ROW, *LAUNCH], observed=True).agg(rounds=("difference", "size"), **asked)
    return means.join(sessions_of(contrast.windows).rename("session"), on=LAUNCH)


def spread(launches: pd.DataFrame, over_sessions: bool) -> pd.DataFrame:
    """By row and platform: `launches`, `rounds`; mean and variance of each logarithm (`loss_mean` …) over `units`.

    Units are launches; if asked for and there are several with about as many launches each, `sessions` (else 0).
    """
    table = launches.reset_index()
    sizes = table.groupby([*ROW, "session"], observed=True).size().groupby(ROW, observed=True)
    several = (sizes.size() >= FEWEST_UNITS) & (sizes.min() * UNEVEN >= sizes.max()) & over_sessions
    several = table.join(several.rename("several"), on=ROW)["several"].astype(bool)
    table["unit"] = table["session"].where(several, -1 - table.index)
    sums = {name: (name, "sum") for name in ("launches", "rounds")}
    means = {name: (name, "mean") for name in LOGS}
    units = table.assign(launches=1).groupby([*ROW, "unit"], observed=True).agg(**sums, **means).reset_index()
    for name in LOGS:
        sums |= {f"{name}_mean": (name, "mean"), f"{name}_variance": (name, "var")}
    rows = units.assign(session=units["unit"] >= 0).groupby(ROW, observed=True)
    return rows.agg(units=("unit", "size"), sessions=("session", "sum"), **sums)


def side_of(table: pd.DataFrame, name: str, suffix: str) -> pd.DataFrame:
    """Mean and variance over units of one logarithm, from the columns of `spread` with this suffix."""
    columns = {"mean": f"{name}_mean{suffix}", "variance": f"{name}_variance{suffix}", "launches": f"units{suffix}"}
    return pd.DataFrame({column: table[own] for column, own in columns.items()})


def units(windows: pd.DataFrame) -> dict[str, str]:
    """Workload -> what one unit of its progress is called."""
    known = windows.drop_duplicates(["workload", "unit"])
    return {str(name): str(unit) for name, unit in zip(known["workload"], known["unit"], strict=True)}


@dataclass(frozen=True)
class Match:
    """A partition of A and the one of B that it is compared with."""

    mix: str
    a: str
    b: str
    masks: str  # same, differ, "" without a partition


def gifts(plan: Plan) -> dict[Place, Gift]:
    """What each partition of each mix gives to whom, in words that leave CPUs out."""
    names = plain_members(plan)
    by_place = {}
    for mix in plan.mixes:
        for partition in mix.partitions:
            by_place[mix.name, partition.name] = _gift(mix, partition, names, cache_of(plan, mix.machine))
    return by_place


def matches(a: Mapping[Place, Gift], b: Mapping[Place, Gift]) -> list[Match]:
    """By name first; then, within a mix, those that give the same under another name. Each partition once."""
    pairs = [
        Match(mix, name, name, SAME if a[mix, name] == b[mix, name] else DIFFER) for mix, name in a if (mix, name) in b
    ]
    taken = {(match.mix, match.b) for match in pairs}
    for mix, name in a:
        if (mix, name) not in b:
            same = [
                other
                for other in b
                if other[0] == mix and other not in taken and other not in a and b[other] == a[mix, name]
            ]
            if same:
                taken.add(same[0])
                pairs.append(Match(mix, name, same[0][1], SAME))
    return pairs


def gift_words(gift: Gift) -> str:
    """ranking 0xf (4 ways, 6 MiB), stream 0xff0 (8 ways, 12 MiB)."""
    return ", ".join(f"{who} {share}" for who, share in gift) or "everything to everybody"


def _gift(mix: Mix, partition: Partition, names: Mapping[tuple[str, str], str], cache: Cache | None) -> Gift:
    words = {}
    for share in partition.shares:
        mask, parts = mask_of(share), []
        if mask is not None and share.ways is not None:
            parts.append(f"{share.ways:#x} ({_size(mask, cache)})")
        if share.code is not None:
            parts.append(f"code {share.code:#x}")
        if share.bandwidth is not None:
            unit = cache.bandwidth.unit if cache and cache.bandwidth else ""
            parts.append(f"bandwidth {rate_words(share.bandwidth, unit)}")
        if share.quota is not None:
            parts.append(f"{share.quota} % of its CPUs' time in each {share.period} ms")
        words[_who(mix, share.member, names)] = " ".join(parts)
    return tuple(sorted(words.items(), key=lambda pair: (pair[0] == "others", pair[0])))


def _who(mix: Mix, member: str, names: Mapping[tuple[str, str], str]) -> str:
    return "others" if member == REST else names.get((mix.name, member), member)


def _size(mask: int, cache: Cache | None) -> str:
    """In ways and, where the machine reports it, in bytes: the same mask is less on a smaller cache."""
    if cache is not None:
        return masks.size_words(mask, cache)
    count = masks.popcount(mask)
    return "1 way" if count == 1 else f"{count} ways"


def shared_launches(a: Iterable[Record], b: Iterable[Record]) -> list[str]:
    """COHORT/NUMBER of A's launches that are B's too, even under another name."""
    theirs = {_launch(record) for record in b}
    return [_place(record) for record in a if _launch(record) in theirs]


def _launch(record: Record) -> tuple[str, ...]:
    """What identifies a launch: where and when it began; of a modelled one its seed, which decides its noise."""
    spec = record.get("spec") or {}
    if record.get("platform") == MODELLED:
        return MODELLED, str(spec.get("seed")), _place(record)
    where = (str(record.get(name, "")) for name in ("host", "boot_id", "started"))
    return *where, _place(record)


def _place(record: Record) -> str:
    spec = record.get("spec") or {}
    return f"{(spec.get('cohort') or {}).get('id', '?')}/{spec.get('number', '?')}"


# Plan and windows -> whether a lead in other settings loses more or less beside others than the lead as it is.
#
# A variant and its base are different leads, so their launches are independent: the logarithms of their slowdowns are
# compared by Welch's t over the launches of both. Sessions are not the units: as a rule both sides were measured in the
# same ones, and what an hour adds to both is not in their difference.

_SAME = ["antagonists", "partition", "platform"]  # in a row of a variant and in the one of its base


def variant_effects(plan: Plan, windows: pd.DataFrame, margin: float, level: float = EFFECT_LEVEL) -> pd.DataFrame:
    """A row per variant, antagonists, partition and platform; p is adjusted over all of them."""
    if not plan.variants:
        return frame([], VARIANT_EFFECTS)
    both = _beside_each_other(plan, _leads(plan, windows))
    if both.empty:
        return frame([], VARIANT_EFFECTS)
    sides = {name: [side_of(both, name, end) for end in ("_base", "")] for name in LOGS}
    difference = welch(*sides["loss"])
    table = both.assign(**{str(name): values for name, values in difference.items()})
    columns = columns_of(difference, "ratio", ratio)
    for prefix, side in zip(("base_", ""), sides["loss"], strict=True):
        columns |= columns_of(one_sample(side), f"{prefix}slowdown", ratio)
    for column, name in (("speed", "baseline"), ("speed_beside", "scene")):
        columns |= columns_of(welch(*sides[name]), column, lambda logs: table["work"] * ratio(logs))
    table = table.assign(**columns, base_launches=table["launches_base"], base_mix=table["mix_base"])
    table["p_holm"] = adjusted(table, table["partition"] != UNMANAGED)
    table["verdict"] = variant_verdicts(table, margin, level)
    return declared(table, VARIANT_EFFECTS, plan)


def _leads(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """Every lead against alone: what its launches show, mean and variance."""
    asked = questions(plan)
    asked = asked[(asked["role"] == "lead") & (asked["baseline"] == "alone") & (asked["antagonists"] != "")]
    found = spread(launch_means(plan, windows), over_sessions=False).reset_index("platform")
    table = asked.join(found, how="inner")
    return table.assign(workload=table["lead"].map(without_class))


def _beside_each_other(plan: Plan, leads: pd.DataFrame) -> pd.DataFrame:
    """The rows of each variant, with those of its base beside the same antagonists."""
    known = pd.DataFrame([each.model_dump() for each in plan.variants]).rename(
        columns={"lead": "base", "name": "variant"}
    )
    known = known.assign(order=np.arange(len(known)))
    own = known.merge(leads, on="workload")
    both = own.merge(leads, left_on=["base", *_SAME], right_on=["workload", *_SAME], suffixes=("", "_base"))
    both["lead"] = [named(base, plan.machine) for base in both["base"]]
    return both.sort_values("order", kind="stable", ignore_index=True)
