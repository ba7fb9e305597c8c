"""What stands below each figure, and what is read aloud in its place; both made from the numbers."""

import math
from collections.abc import Sequence

from castmates.report.figures import (
    attribution,
    counters,
    evolution,
    health,
    heatmap,
    heatmap_partitions,
    layers,
    pareto,
    partitions,
    phases,
    sensitivity,
    steptimes,
    timeline,
    topdown,
    windows,
)
from castmates.report.figures.style import plain
from castmates.report.results import Results, records
from castmates.report.text.health import control_name
from castmates.report.text.stamps import first_words, stamped
from castmates.report.text.words import counted, interval, listed, number, units, within
from castmates.study.spec import UNMANAGED

DRAWN_ALT = 12  # values that an alternative text names; the table has them all


def captions(results: Results, names: Sequence[str]) -> dict[str, str]:
    """The captions of these figures."""
    return {name: first_words(results) + _CAPTIONS[name](results) for name in names}


def alternatives(results: Results, names: Sequence[str]) -> dict[str, str]:
    """The texts that stand in for these figures."""
    return {name: first_words(results) + _ALTERNATIVES[name](results) for name in names}


def _heatmap(results: Results) -> str:
    effects = results.lead_effects("solo")
    blocks = units(effects["blocks"])
    return (
        "Degradation of the lead (columns) beside its antagonists (rows), in per cent: the share of its solo rate, or "
        "of its rate beside placebos, that it loses. Positive numbers are losses. Intervals are 95 % t intervals "
        f"between launches ({blocks}); where there are fewer than three launches the dashed cells show, in brackets, "
        "the interval within launch. Significance is Holm-adjusted over the rows of the same baseline. The row A/A "
        "compares each lead's solo windows with a second set; means (the lead's sensitivity, the antagonist's "
        "contentiousness) are geometric and given where no cell is missing. From six rows or columns on, those that "
        "lose alike stand side by side (average linkage). " + _host(results)
    )


def _control(results: Results) -> str:
    of = units(results.controls.loc[results.controls["control"] != "positive", "blocks"])
    return (
        "Each lead's rate in its solo windows over its rate in an independent second set of solo windows; of the "
        "negative control, its rate beside placebos over its rate beside an antagonist that cannot disturb it. "
        "Nothing differs between the two, so the interval should contain one and lie inside the margin. Bars are "
        f"95 % t intervals between launches ({of}); dashed ones speak of these launches only. " + _host(results)
    )


def _windows(results: Results) -> str:
    source = windows.relative_rates(results.windows)
    shown, chosen = source[source["relative_rate"].notna()], windows.chosen_blocks(source)
    blocks = len(shown[["company", "block"]].drop_duplicates())
    which = (
        "Every block that has rates is shown."
        if len(chosen) == blocks
        else (
            f"{len(chosen)} of {blocks} blocks are shown: the first, the last and evenly spaced ones between; "
            "the others are in the figure's CSV."
        )
    )
    lost = int(source["relative_rate"].isna().sum())
    without = (
        f" {counted(lost, 'window')} gave no rate, or had no solo rate to be compared with, and cannot be drawn."
        if lost
        else ""
    )
    return (
        "The lead's rate in every window, over the median of its solo windows in the same block (of the valid ones, "
        f"if there are any). Hollow crosses are rejected windows. {which}{without} {_host(results)}"
    )


def _partitions(results: Results) -> str:
    of = units(partitions.losses(results)["blocks"])
    return (
        "Degradation of the lead against solo, in per cent, over the ways of the last-level cache that a partition "
        "gives it, a panel for each mix; partitions that leave it all ways stand beside the axis. The line with its "
        "band is the same mix without a partition. Bars and bands are 95 % t intervals "
        f"between launches ({of}); where there are fewer than three, the interval within launch. "
        "The lead's own share is what it loses with no more ways than these "
        "while nobody else uses the cache: alone, or beside placebos on the antagonists' CPUs; the latter is a ratio "
        "of two effects and has no interval. " + _host(results)
    )


def _partitions_alt(results: Results) -> str:
    rows = [row for row in records(partitions.losses(results)) if not math.isnan(row["degradation_pct"])]
    under = [row for row in rows if row["partition"] != UNMANAGED]
    # The lead's own share tells of a mix only where there are no antagonists.
    told = [row for row in under if row["series"] not in partitions.GREYS or not row["antagonists"]]
    parts = []
    for mix in dict.fromkeys(row["mix"] for row in told):
        values = [row["degradation_pct"] for row in told if row["mix"] == mix]
        parts.append(f"{plain(mix)} from {number(min(values))} to {number(max(values))} %")
    more = f"; and {len(parts) - DRAWN_ALT} more mixes" if len(parts) > DRAWN_ALT else ""
    return f"Degradation under partitions: {'; '.join(parts[:DRAWN_ALT])}{more}." if parts else "No loss is known."


def _heatmap_alt(results: Results) -> str:
    rows = records(results.lead_effects("solo"))
    if not rows:
        return heatmap.why_empty(results)
    parts = []
    for row in rows[:DRAWN_ALT]:
        low, high = (
            within(row) if row["verdict"] == "too few blocks" else (row["degradation_low"], row["degradation_high"])
        )
        known = "" if row["verdict"] == "no data" else f" {number(row['degradation_pct'])} % {interval(low, high)}"
        on = f" ({row['platform']})" if len(results.platforms) > 1 else ""
        parts.append(f"{plain(row['lead'])} beside {plain(row['antagonists'])}{on}{known}, {row['verdict']}")
    more = f"; and {len(rows) - DRAWN_ALT} more in the table of effects" if len(rows) > DRAWN_ALT else ""
    return f"Heatmap of degradation against solo: {'; '.join(parts)}{more}."


def _control_alt(results: Results) -> str:
    rows = records(results.controls)
    if not rows:
        return "No A/A control could be computed."
    parts = [f"{row['control']} {control_name(row)} {number(row['ratio'], 3)}, {row['verdict']}" for row in rows]
    return f"Ratios of the controls: {'; '.join(parts)}."


def _windows_alt(results: Results) -> str:
    source = windows.relative_rates(results.windows)
    kept = source[source["valid"] & source["relative_rate"].notna()]
    if kept.empty:
        return "No valid window can be compared with a solo one."
    medians = kept.groupby("what", sort=False)["relative_rate"].median()
    parts = [f"{plain(str(what))} {number(float(value), 2)}" for what, value in medians.head(DRAWN_ALT).items()]
    blocks = counted(len(windows.chosen_blocks(source)), "block")
    return f"Rates of the lead over time in {blocks}; medians over solo: {listed(parts)}."


def _host(results: Results) -> str:
    host = results.machine.get("hostname")
    source = listed(results.platforms) if results.platforms else "no numbers"
    return f"Source: {source}{f', on {host}' if host else ''}. {stamped(results)}"


def _attribution(results: Results) -> str:
    return attribution.caption(results) + _host(results)


def _sensitivity(results: Results) -> str:
    return sensitivity.caption(results) + _host(results)


def _pareto(results: Results) -> str:
    return pareto.caption(results) + _host(results)


def _counters(results: Results) -> str:
    return counters.caption(results) + _host(results)


def _topdown(results: Results) -> str:
    return topdown.caption(results) + _host(results)


def _layers(results: Results) -> str:
    return layers.caption(results) + _host(results)


def _phases(results: Results) -> str:
    return phases.caption(results) + _host(results)


def _heatmap_partitions(results: Results) -> str:
    return heatmap_partitions.caption(results) + _host(results)


def _health(results: Results) -> str:
    return health.caption(results) + _host(results)


def _timeline(results: Results) -> str:
    return timeline.caption(results) + _host(results)


def _evolution(results: Results) -> str:
    return evolution.caption(results) + _host(results)


def _steptimes(results: Results) -> str:
    return steptimes.caption(results) + _host(results)


_CAPTIONS = {
    "heatmap": _heatmap,
    "attribution": _attribution,
    "health": _health,
    "control": _control,
    "windows": _windows,
    "heatmap_partitions": _heatmap_partitions,
    "partitions": _partitions,
    "sensitivity": _sensitivity,
    "pareto": _pareto,
    "counters": _counters,
    "topdown": _topdown,
    "layers": _layers,
    "phases": _phases,
    "evolution": _evolution,
    "steptimes": _steptimes,
    "timeline": _timeline,
}
_ALTERNATIVES = {
    "heatmap": _heatmap_alt,
    "attribution": attribution.alternative,
    "health": health.alternative,
    "control": _control_alt,
    "windows": _windows_alt,
    "heatmap_partitions": heatmap_partitions.alternative,
    "partitions": _partitions_alt,
    "sensitivity": sensitivity.alternative,
    "pareto": pareto.alternative,
    "counters": counters.alternative,
    "topdown": topdown.alternative,
    "layers": layers.alternative,
    "phases": phases.alternative,
    "evolution": evolution.alternative,
    "steptimes": steptimes.alternative,
    "timeline": timeline.alternative,
}
