"""The data contract of a comparison of studies: add columns at the end, never rename or reorder."""

from castmates.results.columns.block import Columns

# A row per mix × member × baseline × partition of either of two studies, of which A is the baseline.
COMPARISON: Columns = {
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "member": "str",  # without CPUs; the second antagonist of the same program is stream#2
    "role": "str",
    "baseline": "str",
    "partition_a": "str",
    "partition_b": "str",  # another name where only what it gives is the same
    "masks": "str",  # same, differ; "" without a partition, and where only one study has it
    "lead_ways_a": "Int64",
    "lead_ways_b": "Int64",
    "where": "str",  # both, only in A, only in B
    "platform_a": "str",
    "platform_b": "str",
    "slowdown_a": "float64",
    "slowdown_a_low": "float64",  # 95 % between launches, t
    "slowdown_a_high": "float64",
    "slowdown_b": "float64",
    "slowdown_b_low": "float64",
    "slowdown_b_high": "float64",
    "blocks_a": "int64",
    "blocks_b": "int64",
    "rounds_a": "int64",
    "rounds_b": "int64",
    "ratio": "float64",  # slowdown B / slowdown A; none across platforms
    "ratio_low": "float64",  # 95 %, Welch's t over the launches of both; NaN below three on either side
    "ratio_high": "float64",
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over the rows of this baseline, those under partitions by themselves
    "verdict": "str",  # loses more in B, loses less in B, no difference, can't tell yet, too few launches, no data, …
    "unit": "str",  # of progress; "" where the studies count in different ones
    "baseline_rate_a": "float64",  # units per second, geometric mean over launches
    "baseline_rate_b": "float64",
    "baseline_rate_ratio": "float64",  # B / A, with Welch's interval
    "baseline_rate_ratio_low": "float64",
    "baseline_rate_ratio_high": "float64",
    "scene_rate_ratio": "float64",  # the same of the scene, such as the co-run
    "scene_rate_ratio_low": "float64",
    "scene_rate_ratio_high": "float64",
}

# comparison.csv and .parquet of `castmates compare --output FOLDER`: these rows for each study beside the baseline.
COMPARISONS: Columns = {
    **COMPARISON,  # p_holm is adjusted over the rows of all studies
    "letter": "str",  # of the study that is B in this row: B, C, …
    "study_a": "str",
    "study_b": "str",
}

# means.csv and .parquet: a row per study, the baseline first. Leads against solo, without a partition.
COMPARISON_MEANS: Columns = {
    "letter": "str",  # A is the baseline
    "platform": "str",  # "" where a study has numbers of several: it has no mean
    "pairs": "int64",  # that all studies have: a lead and its antagonists
    "blocks": "int64",  # launches in which all pairs of their company were measured
    "slowdown": "float64",  # geometric mean over the pairs
    "slowdown_low": "float64",  # 95 % between launches of these pairs; NaN below three of a company
    "slowdown_high": "float64",
    "ratio": "float64",  # to the baseline's; none across platforms
    "ratio_low": "float64",  # 95 %, Welch's t over the launches of both
    "ratio_high": "float64",
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over the other studies
    "verdict": "str",  # baseline; else as in comparison.csv
}

# history.csv and .parquet: a row per study and pair, in the order of time. Leads against solo, without a partition.
COMPARISON_HISTORY: Columns = {
    "letter": "str",
    "study": "str",
    "date": "str",  # ISO 8601, UTC: the middle of the study's launches
    "platform": "str",
    "host": "str",  # several are joined by " and "
    "lead": "str",
    "antagonists": "str",
    "slowdown": "float64",
    "slowdown_low": "float64",  # 95 % between launches, t
    "slowdown_high": "float64",
    "blocks": "int64",
}

# replay.csv and .parquet of `castmates replay`: a row per published effect; "here" is where it was measured again.
REPLAY: Columns = {
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "member": "str",  # without CPUs; the second antagonist of the same program is stream#2
    "role": "str",
    "baseline": "str",
    "partition": "str",  # by its published name
    "partition_here": "str",  # another name where only what it gives is the same
    "masks": "str",  # same, differ; "" without a partition
    "platform_published": "str",
    "platform_here": "str",
    "published_slowdown": "float64",
    "published_slowdown_low": "float64",  # 95 % between launches, t
    "published_slowdown_high": "float64",
    "here_slowdown": "float64",
    "here_slowdown_low": "float64",
    "here_slowdown_high": "float64",
    "published_blocks": "int64",
    "here_blocks": "int64",
    "ratio": "float64",  # slowdown here / published slowdown; none across platforms
    "ratio_low": "float64",  # 95 %, Welch's t over the launches of both; NaN below three on either side
    "ratio_high": "float64",
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over all effects that were measured again
    "verdict": "str",  # agrees, differs, can't tell yet, too few launches, no data, not measured here, not published, …
    "joint_slowdown": "float64",  # of both together, if they have the same truth; none where they differ
    "joint_slowdown_low": "float64",  # 95 %, from the t of each side
    "joint_slowdown_high": "float64",
}

# comparison_counters.csv, comparison_phases.csv, comparison_operations.csv, comparison_quantiles.csv, and the same as
# .parquet: what lies below the losses. A row per mix × member × partition × item of either of two studies, of which A
# is the baseline. Each change is that of the item beside others against its baseline alone, within one study.
COMPARISON_DETAILS: Columns = {
    "letter": "str",  # of the study that is B in this row: B, C, …
    "study_a": "str",
    "study_b": "str",
    "mix": "str",
    "member": "str",  # without CPUs; "" of what belongs to a package
    "baseline": "str",  # solo, alone
    "partition_a": "str",
    "partition_b": "str",  # another name where only what it gives is the same
    "item": "str",  # a metric; a phase; a group of operations; a quantile of steps or requests
    "scale": "str",  # of changes: ratio, points
    "where": "str",  # both, only in A, only in B
    "platform_a": "str",
    "platform_b": "str",
    "change_a": "float64",  # ratio: beside others over alone; points: percentage points between them
    "change_a_low": "float64",  # 95 % between launches; NaN below three, here and below
    "change_a_high": "float64",
    "change_b": "float64",
    "change_b_low": "float64",
    "change_b_high": "float64",
    "launches_a": "int64",
    "launches_b": "int64",
    "difference": "float64",  # ratio: change B / change A; points: change B - change A; none across platforms
    "difference_low": "float64",  # 95 %, Welch's t over the launches of both
    "difference_high": "float64",
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over the table's rows of this baseline in all studies, those under partitions apart
    "verdict": "str",  # larger in B, smaller in B, no difference, can't tell yet, too few launches, no data, …
}
