"""The data contract: the columns of every table that a study leaves, in order, with their types."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from castmates.results.columns.contract import Columns, Table, col, ends, interval, usual
from castmates.study import capabilities

if TYPE_CHECKING:
    import pandas as pd

_effects_table = partial(Table, rule="analyse")

EFFECTS = _effects_table(
    "effects",
    "tables/effects.csv and .parquet: a row per mix × partition × baseline × member.",
    *usual("study mix lead"),
    col("antagonists", str, 'joined by "+"'),
    *usual("member role partition"),
    col("lead_ways", int | None, "NA where no mask was set"),
    col("baseline", str, "alone; for the lead also placebo, under a partition placebo@mask and unmanaged"),
    col("metric", str, "rate; p99 of latency, of an open-loop service, whose slowdown is its ratio"),
    *interval(
        "slowdown",
        "rate(baseline) / rate(scene), geometric mean over what `over` names",
        "95 % between these; NaN below three launches",
    ),
    *interval("loss_pct"),
    *usual("launches"),
    col("rounds", int, "complete pairs, over all launches"),
    col("windows_valid", int, "of the scene"),
    *usual("windows_rejected platform"),
    *ends("within", "95 % within launch, of the slowdown: rounds as units; covers these launches only"),
    col("p_value", float, "two-sided t over the same; NaN below three launches"),
    col("p_holm", float, "adjusted over the study's rows of this baseline, those under partitions by themselves"),
    col("verdict", str, "loss, gain, no loss, unclear, too few launches, no data"),
    col("baseline_windows_valid", int, "of the baseline; of a lead against alone: of both its scenes"),
    col("baseline_windows_rejected", int, "the same"),
    col("rejection_rate", float, "share of the scene's slices; NaN where there was none"),
    col("baseline_rejection_rate", float, "share of the baseline's windows"),
    col("possibly_biased", bool, "the scene was rejected more often than its baseline"),
    col("across_stretches", bool, "scene and baseline do not alternate, because masks change between them"),
    *interval(
        "growth_pct",
        "by how much the slowdown of the later halves of slices is above that of the earlier ones",
        "95 %, as of the slowdown",
    ),
    col("still_growing", bool, "it is above zero for certain, and large enough to matter"),
    *interval(
        "loss_per_cpu_pct",
        "loss_pct of the work that is done in a second of CPU time",
        "95 %, as of the slowdown",
    ),
    *interval(
        "others_points",
        "what would be lost of the baseline's rate if other programs' larger share of the member's CPUs were all",
        "95 %, as of the slowdown",
        stem="others",
    ),
    col("others_seen", bool, "it is above zero for certain, and large enough to matter"),
    *usual("held"),
    col("antagonists_gb_s", float, "1e9 bytes a second that antagonists read and wrote by their own count"),
    col("antagonists_peak_pct", float, "the same in per cent of the peak measured of one package; NaN: not known"),
    *usual("machine"),
    col("nodes", int, "hosts on which it was measured"),
    col("nodes_p_holm", float, "that the nodes do not differ, adjusted as p_holm is; NaN on one node"),
    col(
        "over",
        str,
        "whose means the interval is of: launches; launches of these nodes (two nodes); nodes; on one node also "
        "launches of these sessions (two); sessions",
    ),
    col("freedom", float, "degrees of freedom of the interval; NaN where there is none"),
    col("sessions", int, "runs of launches without half an hour in which none began"),
    col("sessions_p_holm", float, "that they do not differ, adjusted as p_holm is; NaN for one, or on several nodes"),
    *ends("hour", "95 % for the loss of one more session of as many launches, per cent; NaN below three sessions"),
    col("drift_p_holm", float, "that launches show no trend over time, adjusted alike; NaN below four launches"),
    estimate="effects.effects:estimate_effects",
)

ATTRIBUTION = _effects_table(
    "attribution",
    "tables/attribution.csv: a row per mix and part of its lead's loss against alone; docs/methodology.md has the "
    "chain.",
    *usual("study mix lead"),
    col("antagonists", str, 'joined by "+"'),
    *usual("member"),
    col("part", str, "total, busy antagonist, not given back, own smaller share, despite own ways, cache capacity …"),
    col("part_of", str, 'whose part it is: parts of the same one add up to it; "" for the total'),
    col("start", str, "alone, placebo, placebo@mask, isolated; the part is log rate(start) - log rate(end)"),
    col("end", str, "…, unmanaged"),
    *interval("log", "natural logarithm of the ratio of rates", "95 % between launches; NaN below three launches"),
    *interval("loss_pct", "the same in per cent of the rate at `start`"),
    *interval("points", "percentage points of the rate alone; they add up too"),
    col("launches", int, "that estimate"),
    col("rounds", int, "in which every stage was measured, over these launches"),
    *usual("p_value"),
    col("p_holm", float, "adjusted over the study's rows of this part"),
    col("verdict", str, "loss, gain, no loss, unclear, too few launches, no data"),
    *ends("within", "95 % within launch, in log terms"),
    col("partition", str, 'under which lead and antagonists are isolated; "" where there is none'),
    *usual("lead_ways cache_ways"),
    col("how", str, "named, the only one, chosen"),
    col("candidates", int, "partitions that isolate, of which it is one"),
    col("launches_choosing", int, "that chose it, and do not estimate"),
    col("note", str, "what could not be separated, and why"),
    *usual("platform"),
    *ends("points_within", "95 % within launch, of the points"),
    col("possibly_biased", bool, "a co-run at either end was rejected more often than a baseline, as in effects"),
    *usual("machine"),
    estimate="partitions.attribution:estimate_attribution",
    asked=capabilities.PLACEBO,
)

CONTROLS = _effects_table(
    "controls",
    "tables/controls.csv: what is known beforehand. A/A: a second `alone` scene of each lead against its first.",
    *usual("study lead"),
    col("control", str, "A/A, positive, negative"),
    *interval("ratio", "rate(baseline) / rate(scene); of A/A: rate(alone) / rate(alone-again)"),
    *ends("within"),
    *usual("launches rounds"),
    col("p_value", float, 'two-sided; of the positive control one-sided ("it loses more than the margin")'),
    col("p_holm", float, "adjusted over all A/A and negative controls; the positive one is a separate family"),
    col(
        "verdict",
        str,
        "passes, unstable, inconclusive; sensitive, no sensitivity shown here; too few launches, no data",
    ),
    *usual("platform"),
    col("mix", str, "of the positive and the negative control"),
    col("baseline", str, "alone; of the positive and the negative control placebo"),
    col("study_lead", bool, "False where the lead plays only in the controls"),
    *usual("machine"),
    estimate="effects.effects:estimate_controls",
)

CARRYOVER = _effects_table(
    "carryover",
    "tables/carryover.csv: whether the scene before a window affects its rate; a row per member.",
    *usual("study member workload role"),
    *interval(
        "change_pct",
        "of the rate where it was frozen in the slice before, against where it ran",
        "95 %, launches as units; NaN below three launches",
    ),
    col("detectable_pct", float, "a change that would have been found in four studies of five"),
    col("launches", int, "with enough windows"),
    col("windows", int, "slices in stretches in which some scene freezes it"),
    col("windows_after_frozen", int, "of these, after one in which the member was frozen"),
    *usual("p_value"),
    col("p_holm", float, "adjusted over the members of the same role"),
    col("verdict", str, "none seen, seen, too few windows; never frozen"),
    *usual("platform machine"),
    estimate="effects.carryover:estimate_carryover",
)

LAUNCHES = _effects_table(
    "launches",
    "tables/launches.csv: a row per launch, also of failed ones.",
    *usual("study cohort launch lead"),
    col("status", str, "measured, failed"),
    col("reason", str, "why it failed"),
    col("started", str, "ISO 8601, UTC"),
    col("launch_seconds", float, "from the start until all members were ready"),
    col("total_seconds", float, "that the launch took"),
    col("rounds", int, "rounds without a rejected window"),
    col("windows", int, "that were measured"),
    *usual("windows_rejected platform"),
    col("host", str, "the node that it was measured on"),
    col("processor", str, 'its model; "" where nothing was measured'),
    col("boot_id", str, "of the node: launches between two starts of it share one"),
    col("left_out", bool, "kept, and not analysed, because the study leaves out its host"),
    *usual("machine"),
    estimate="effects.pooling:launches_table",
)

MARGINS = _effects_table(
    "margins",
    "tables/margins.csv: the margins of the matrix lead × antagonist without a partition, where all of its cells "
    "are there.",
    *usual("study"),
    col("margin", str, "sensitivity of a lead, contentiousness of an antagonist"),
    col("who", str, "the lead, or the antagonist"),
    col("baseline", str, "alone, placebo"),
    *interval(
        "slowdown",
        "geometric mean over the cells; NaN where one is missing",
        "95 % between launches, or between three or more sessions; NaN where a cohort has fewer than three",
    ),
    *interval("loss_pct"),
    col("cells", int, "that were measured"),
    col("cells_of", int, "that a whole row or column has"),
    col("launches", int, "launches in which all the cells of their cohort were measured"),
    *usual("platform machine"),
    estimate="effects.effects:margins",
)

STAMPS = _effects_table(
    "stamps",
    "tables/stamps.csv: what is stamped on the whole study, a row per stamp.",
    *usual("study"),
    col("stamp", str, "origin (not all was measured), control, sensitivity, masks (some were set), machines, nodes"),
    col("word", str, "in a word"),
    col("good", bool, "never where not all was measured"),
    col("sentence", str, "in words"),
    col("platform", str, 'of the numbers that it is about; several are separated by ", "'),
    estimate="effects.stamps:study_stamps",
)

SYSTEM = Table(
    "system",
    "tables/system.csv: the combined throughput of a mix; a row per mix × partition × metric. The lead's slowdown"
    " is against alone, an antagonist's against being alone.",
    *usual("study mix lead antagonists partition"),
    col("lead_ways", int | None, "NA where no mask was set"),
    col("members", int, "that the mix has"),
    col("metric", str, "STP, ANTT, harmonic speedup, unfairness, max slowdown, Jain"),
    *interval(
        "value",
        "geometric mean over launches of the metric of each launch",
        "95 % between launches; NaN below three launches",
        stem="",
    ),
    col("launches", int, "in which every member has a pair"),
    col("launches_incomplete", int, "measured ones in which some member has none"),
    *usual("platform"),
    col("possibly_biased", bool, "of a member, the co-run was rejected more often than its baseline, as in effects"),
    *usual("machine"),
    rule="analyse",
    estimate="effects.system:system_metrics",
    asked=capabilities.ALONE,
)

LATENCY = _effects_table(
    "latency",
    "tables/latency.csv: how long a member's steps take; a row per member, scene, part and quantile. A step lies "
    "between two heartbeats in one valid window. Quantiles are per launch; where it has too few steps, none.",
    *usual("study member workload role"),
    col("kind", str, "alone, placebo, corun, antagonist-alone"),
    col("scene", str, "alone, placebo:1, corun:<mix>, antagonist-alone:<member>; with @<partition> under one"),
    col("mix", str, '"" where the scene serves several mixes'),
    *usual("partition unit"),
    col("units", float, "that a step covers"),
    col("quantile", str, "p50, p95, p99"),
    *interval(
        "ms",
        "geometric mean over launches of each launch's quantile; NaN where missing",
        "95 % between launches; NaN below three launches",
    ),
    col("baseline", str, 'alone; "" for a baseline itself'),
    *interval("ratio", "over the baseline's, paired by launch", "95 % between launches"),
    col("launches", int, "with enough steps"),
    col("launches_few", int, "with too few, which are left out"),
    col("launches_paired", int, "in which the baseline has enough too"),
    col("steps", int, "in the launches with enough"),
    col("steps_needed", int, "of a launch"),
    col("refused", str, 'why there is no number; "" where there is one'),
    *usual("platform"),
    col("possibly_biased", bool, "the scene was rejected more often than its baseline, as in effects"),
    *usual("machine"),
    col(
        "what",
        str,
        "step; forward phase …: an outermost phase of a step; request: to an open-loop service, counts from when it "
        "was due",
    ),
    estimate="explanations.services:latencies",
)

RESOURCES = Table(
    "resources",
    "tables/resources.csv: what a member used in a co-run against its baseline, where that was measured; a row "
    "per mix × partition × member × metric. Each value is over the rounds in which both windows have one. What "
    "belongs to a package (energy, memory controllers, uncore clock) has no member, and role `package`: other "
    "programs are included.",
    *usual("study mix lead antagonists partition lead_ways member role"),
    col("metric", str, "cache occupancy, memory bandwidth, instructions per cycle, LLC-load-misses …, Backend_Bound …"),
    col("unit", str, 'bytes, bytes per second, per cent of slots, GHz, W, per second; "" for a ratio of two counts'),
    col("baseline", str, "alone; of clocks and packages also placebo"),
    *interval(
        "value",
        "geometric mean over launches; of shares the arithmetic one",
        "95 % between launches; NaN below three launches, here and below",
    ),
    *interval("baseline_value", "what it came to in the baseline", stem="baseline"),
    col("scale", str, "of the change: ratio, points"),
    *interval("change", "value over the baseline's; of shares their difference"),
    *usual("launches rounds platform"),
    col("scope", str, "member; what has none: package 0 …, packages (all of the launch's together)"),
    col("scene", str, "whose value it is: corun; placebo (a busy antagonist's stand-in); alone under a partition"),
    *usual("machine"),
    rule="analyse",
    estimate="explanations.resources:resources",
    asked=capabilities.RESOURCES,
)

MITIGATIONS = Table(
    "mitigations",
    "tables/mitigations.csv: what is tried against the loss of a mix, beside nothing done; a row per mix × mitigation.",
    *usual("study mix lead"),
    col("antagonists", str, 'joined by "+", with their distance after ":" where the mix has one'),
    col("mitigation", str, "unmanaged (nothing is done), ways, bandwidth, code, core, socket, other-socket, quota"),
    col("partition", str, 'under which it was measured; "" for none'),
    col("how", str, "the partition is the only one, or was chosen"),
    col("candidates", int, "partitions of which it is one"),
    col("launches_choosing", int, "that chose it, and do not estimate"),
    *interval(
        "loss_pct",
        "of the lead against alone: 100 × (1 - 1/slowdown)",
        "95 % between launches; NaN below three launches, here and below",
    ),
    *interval("gain_pct", "by how much the lead's rate is above that with nothing done"),
    *interval("others_loss_pct", "of the antagonists against being alone: geometric mean over them"),
    *interval("cost_pct", "by how much the antagonists' rate is below that with nothing done"),
    col("launches", int, "that estimate"),
    *usual("rounds"),
    col("p_value", float, "of the gain"),
    col("p_holm", float, "adjusted over the mitigations of the mix"),
    col("verdict", str, "of the change: gain (it gives back), loss, no loss, unclear, too few launches, no data"),
    col("reason", str, "why it was not tried, or has no number"),
    *usual("platform machine"),
    rule="analyse",
    estimate="partitions.mitigations:estimate_mitigations",
    asked=capabilities.MITIGATIONS,
)

DISTANCES = Table(
    "distances",
    "tables/distances.csv: the loss of a lead by number and nearness of its antagonists; a row per lead × "
    "antagonists × distance × count, where a study varies one of them.",
    *usual("study mix lead"),
    col("antagonists", str, 'those that are there `count` times, joined by "+"'),
    col("distance", str, 'cpu (the lead\'s own), smt, core, llc, socket, other-socket; "" where placement chose'),
    col("count", int, "antagonists"),
    *interval("slowdown", "against alone, as in effects", "95 %, as in effects"),
    *interval("loss_pct", "loss of the lead's rate, as in effects"),
    *usual("launches rounds"),
    col("verdict", str, "as in effects"),
    col("nearer", str, 'the next nearer distance with as many antagonists; "" for none'),
    *interval(
        "gain_pct",
        "by how much the lead's rate is above that at the nearer one, inside rounds",
        "95 % between launches",
    ),
    col("gain_launches", int, "in which both distances were measured"),
    *usual("platform"),
    col("reason", str, "why it was not measured: what it needs of the machine, and what there is"),
    *usual("machine"),
    rule="analyse",
    estimate="effects.distances:estimate_distances",
    asked=capabilities.DISTANCES,
)


def frame(rows: Sequence[Mapping[str, Any]], columns: Columns) -> "pd.DataFrame":
    """A table with exactly these columns and types, also when there are no rows."""
    import pandas as pd

    if not rows:
        empty: Any = pd.array  # much faster than to convert a table of nothing
        return pd.DataFrame({name: empty([], dtype=kind) for name, kind in columns.items()})
    table = pd.DataFrame(list(rows), columns=list(columns))
    # Whole numbers beside None have become floats there, which do not distinguish antagonists above 2**53.
    rounded = [name for name, kind in columns.items() if kind == "Int64" and table[name].dtype == "float64"]
    for name in rounded:
        table[name] = pd.Series([row.get(name) for row in rows], dtype="object").astype("Int64")
    return table.astype(dict(columns))
