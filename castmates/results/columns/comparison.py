"""The data contract of a comparison of studies."""

from castmates.results.columns.contract import Table, col, interval, usual

COMPARISON = Table(
    "comparison",
    "A row per mix × member × baseline × partition of either of two studies, of which A is the baseline.",
    *usual("mix lead antagonists"),
    col("member", str, "without CPUs; the second antagonist of the same program is stream#2"),
    *usual("role baseline"),
    col("partition_a", str, "its name in A"),
    col("partition_b", str, "another name where only what it gives is the same"),
    col("masks", str, 'same, differ; "" without a partition, and where only one study has it'),
    col("lead_ways_a", int | None, "ways that the lead may fill in A; NA where no mask was set"),
    col("lead_ways_b", int | None, "the same in B"),
    col("where", str, "both, only in A, only in B"),
    col("platform_a", str, "of the numbers of A"),
    col("platform_b", str, "of the numbers of B"),
    *interval("slowdown_a", "of A", "95 %, t, between launches or sessions_a"),
    *interval("slowdown_b", "of B"),
    col("sessions_a", int, "of A, if these are the units: three or more, with about as many launches each; else 0"),
    col("sessions_b", int, "the same of B"),
    col("launches_a", int, "launches that estimate in A"),
    col("launches_b", int, "launches that estimate in B"),
    col("rounds_a", int, "complete rounds in A"),
    col("rounds_b", int, "complete rounds in B"),
    *interval(
        "ratio",
        "slowdown B / slowdown A; none across platforms",
        "95 %, Welch's t over the launches or sessions of both; NaN below three on either side",
    ),
    *usual("p_value"),
    col("p_holm", float, "adjusted over the rows of this baseline, those under partitions by themselves"),
    col("verdict", str, "loses more in B, loses less in B, no difference, unclear, too few launches, no data, …"),
    col("unit", str, 'of progress; "" where the studies count in different ones'),
    col("baseline_rate_a", float, "units per second, geometric mean over launches"),
    col("baseline_rate_b", float, "the same in B"),
    *interval("baseline_rate_ratio", "B / A, with Welch's interval"),
    *interval("scene_rate_ratio", "the same of the scene, such as the co-run"),
)

COMPARISONS = Table(
    "comparisons",
    "comparison.csv and .parquet of `castmates compare --output FOLDER`: these rows for each study beside the "
    "baseline.",
    *COMPARISON.columns,
    col("letter", str, "of the study that is B in this row: B, C, …"),
    col("study_a", str, "name of the baseline"),
    col("study_b", str, "name of the other study"),
)

COMPARISON_MEANS = Table(
    "comparison_means",
    "means.csv and .parquet: a row per study, the baseline first. Leads against alone, without a partition.",
    col("letter", str, "A is the baseline"),
    col("platform", str, '"" where a study has numbers of several: it has no mean'),
    col("pairs", int, "that all studies have: a lead and its antagonists"),
    col("launches", int, "launches in which all pairs of their cohort were measured"),
    *interval(
        "slowdown",
        "geometric mean over the pairs",
        "95 % between launches, or sessions, of these pairs; NaN below three of a cohort",
    ),
    *interval(
        "ratio", "to the baseline's; none across platforms", "95 %, Welch's t over the launches or sessions of both"
    ),
    *usual("p_value"),
    col("p_holm", float, "adjusted over the other studies"),
    col("verdict", str, "baseline; else as in comparison.csv"),
)

COMPARISON_THROUGHPUT = Table(
    "comparison_throughput",
    "throughput.csv and .parquet: work per second beside others, without a partition. A row per study and workload, "
    "and one for the whole list; the baseline first. A place is a member of a mix; a workload has one or several.",
    col("letter", str, "A is the baseline"),
    col("workload", str, 'lead or antagonist; "" is the whole list'),
    col("unit", str, 'of progress; "" of the whole list'),
    col("platform", str, '"" where a study has numbers of several: it has no mean'),
    col("mixes", int, "that all studies have"),
    col("places", int, "in these mixes, whose units are the same in all studies; open-loop services are left out"),
    col("launches", int, "launches in which all places of their cohort were measured"),
    *interval(
        "rate",
        "units per second, geometric mean over the places; NaN of the whole list, whose units differ",
        "95 % between launches, or sessions, of these places; NaN below three of a cohort",
    ),
    *interval(
        "ratio", "to the baseline's; none across platforms", "95 %, Welch's t over the launches or sessions of both"
    ),
)

COMPARISON_HISTORY = Table(
    "comparison_history",
    "history.csv and .parquet: a row per study and pair, in the order of time. Leads against alone, without a "
    "partition.",
    col("letter", str, "of the study; A is the baseline"),
    *usual("study"),
    col("date", str, "ISO 8601, UTC: the middle of the study's launches"),
    *usual("platform"),
    col("host", str, 'several are joined by " and "'),
    *usual("lead antagonists"),
    *interval("slowdown", "of the lead against alone, as in effects", "95 %, t, as in comparison.csv"),
    *usual("launches"),
)

REPLAY = Table(
    "replay",
    "replay.csv and .parquet of `castmates sweep --replay`: a row per published effect;"
    ' "here" is where it was measured again.',
    *usual("mix lead antagonists"),
    col("member", str, "without CPUs; the second antagonist of the same program is stream#2"),
    *usual("role baseline"),
    col("partition", str, "by its published name"),
    col("partition_here", str, "another name where only what it gives is the same"),
    col("masks", str, 'same, differ; "" without a partition'),
    col("platform_published", str, "of the published numbers"),
    col("platform_here", str, "of the numbers here"),
    *interval("published_slowdown", "as published", "95 % between launches or sessions, t"),
    *interval("here_slowdown", "as measured here"),
    col("published_launches", int, "launches behind the published number"),
    col("here_launches", int, "launches that estimate here"),
    *interval(
        "ratio",
        "slowdown here / published slowdown; none across platforms",
        "95 %, Welch's t over the launches or sessions of both; NaN below three on either side",
    ),
    *usual("p_value"),
    col("p_holm", float, "adjusted over all effects that were measured again"),
    col("verdict", str, "agrees, differs, unclear, too few launches, no data, not measured here, not published, …"),
    *interval(
        "joint_slowdown",
        "of both together, if they have the same truth; none where they differ",
        "95 %, from the t of each side",
    ),
)

COMPARISON_DETAILS = Table(
    "comparison_details",
    "comparison_counters.csv, comparison_phases.csv, comparison_operations.csv, comparison_quantiles.csv, and the"
    " same as .parquet: what lies below the losses. A row per mix × member × partition × item of either of two "
    "studies, of which A is the baseline. Each change is that of the item beside others against its baseline "
    "alone, within one study.",
    col("letter", str, "of the study that is B in this row: B, C, …"),
    col("study_a", str, "name of the baseline"),
    col("study_b", str, "name of the other study"),
    *usual("mix"),
    col("member", str, 'without CPUs; "" of what belongs to a package'),
    col("role", str, "lead, antagonist, package"),
    col("partition_a", str, "its name in A"),
    col("partition_b", str, "another name where only what it gives is the same"),
    col("item", str, "a metric; a phase; a group of operations; a quantile of steps or requests"),
    col("scale", str, "of changes: ratio, points"),
    col("where", str, "both, only in A, only in B"),
    col("platform_a", str, "of the numbers of A"),
    col("platform_b", str, "of the numbers of B"),
    *interval(
        "change_a",
        "ratio: beside others over alone; points: percentage points between them",
        "95 % between launches; NaN below three, here and below",
    ),
    *interval("change_b", "the same in B"),
    col("launches_a", int, "that estimate in A"),
    col("launches_b", int, "that estimate in B"),
    *interval(
        "difference",
        "ratio: change B / change A; points: change B - change A; none across platforms",
        "95 %, Welch's t over the launches of both",
    ),
    *usual("p_value"),
    col(
        "p_holm", float, "adjusted over the table's rows of this baseline in all studies, those under partitions apart"
    ),
    col("verdict", str, "larger in B, smaller in B, no difference, unclear, too few launches, no data, …"),
)
