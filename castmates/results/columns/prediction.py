"""The data contract of predictions: what pairs lose that were not measured, and how far predictions are off."""

from castmates.results.columns.contract import Table, col, interval, usual
from castmates.study import capabilities

PREDICTIONS = Table(
    "predictions",
    "tables/predictions.csv: a row per lead × antagonists of the grid of `predict`, and of what was measured "
    "beside it.",
    *usual("study lead"),
    col("antagonists", str, 'joined by "+"'),
    col("partition", str, "unmanaged: nothing is predicted under partitions"),
    col("part", str, "grid; profile (with a bubble or a reporter); check (kept from the fit); several (antagonists)"),
    *interval(
        "loss_pct",
        "of the rate when alone: 100 × (1 - 1/slowdown); NaN where nothing can be predicted",
        "95 %: measured as in effects, predicted for a further measurement; NaN where none",
    ),
    col("how", str, 'measured as lead, as antagonist; predicted from pairs, from pairs together; "" where unknown'),
    col("launches", int, "launches that measured it"),
    *interval("without_pct", "where it was measured: the prediction without the mix of these workloads"),
    col("error", float, "without_pct - loss_pct, in points"),
    col("platform", str, "of what was measured, which predictions follow from"),
    *usual("machine"),
    col("source", str, 'measured, predicted; "" where unknown'),
    rule="analyse",
    estimate="prediction.table:estimate_predictions",
    asked=capabilities.PREDICTION,
)

PROFILES = Table(
    "profiles",
    "tables/profiles.csv: the sensitivity and the pressure of each workload; a row per workload × bubble or "
    "reporter. The equivalents are derived: no dial was set to them.",
    *usual("study workload"),
    col("profile", str, "sensitivity (its loss beside a bubble), pressure (a reporter's loss beside it)"),
    col("other", str, "the bubble, the reporter"),
    *interval("loss_pct", "as in predictions"),
    *usual("launches platform machine"),
    col("source", str, 'measured, predicted; "" where unknown'),
    col("equivalent_mib", float, "of pressure: the capacity dial beside which the reporter would lose as much; or NaN"),
    col("equivalent_gb_s", float, "the bandwidth dial: interpolated between two measured settings, 1e9 bytes a second"),
    rule="analyse",
    estimate="prediction.table:estimate_predictions",
    asked=capabilities.PREDICTION,
)
