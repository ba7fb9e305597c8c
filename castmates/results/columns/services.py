"""The data contract of what is made of open-loop services."""

from castmates.results.columns.contract import Table, col, ends, interval, usual
from castmates.study import capabilities

SERVICES = Table(
    "services",
    "tables/services.csv: a row per member that is an open-loop service, scene and platform.",
    *usual("study"),
    col("service", str, "members of one service differ in their load alone"),
    *usual("member workload role"),
    col("load", float, "requests per second that its command offers; those that were due where it names none"),
    *usual("kind scene"),
    col("mix", str, '"" where the scene serves several mixes'),
    col("antagonists", str, 'joined by "+", with their distance after ":" where the mix has one'),
    *usual("partition"),
    col("offered", float, "requests per second that were due; mean over windows"),
    col("answered", float, "answers per second in the same time"),
    col("answered_share", float, "of the load: geometric mean over launches"),
    *ends("share", "95 % between launches"),
    col("unanswered", float, "share of the requests that were not answered when their slice ended"),
    col("saturated", bool, "it answers less than 97 % of the load: latencies grow for as long as that lasts"),
    *interval(
        "p50_ms",
        "from when a request was due; geometric mean over launches; NaN where it is not known",
        "95 % between launches",
    ),
    *interval("p50_ratio", "over that of the baseline in the same launch, as in latency.csv", "95 % between launches"),
    *interval("p95_ms", "the same of another quantile", "95 % between launches"),
    *interval("p95_ratio", "over that of the baseline in the same launch", "95 % between launches"),
    *interval("p99_ms", "what the service is judged by", "95 % between launches"),
    *interval("p99_ratio", "over that of the baseline in the same launch", "95 % between launches"),
    *usual("launches platform machine"),
    rule="analyse",
    estimate="explanations.services:services",
    asked=capabilities.SERVICES,
)

LOADS = Table(
    "loads",
    "tables/loads.csv: the highest load that keeps the study's limit on a latency; a row per service, antagonists "
    "and partition. What lies between two measured loads is interpolated, and stamped as that.",
    *usual("study"),
    col("service", str, "members of one service differ in their load alone"),
    col("antagonists", str, '"" alone'),
    *usual("partition"),
    col("quantile", str, "p50, p95, p99"),
    col("limit_ms", float, "of the study"),
    col(
        "load", float, "highest measured load, in requests per second, that keeps it with all lower ones; NaN for none"
    ),
    col("load_ms", float, "its latency there"),
    col("load_ms_high", float, "upper end of its interval: what is held against the limit"),
    col("interpolated", float, "load at which that end reaches the limit; NaN where that is not between two loads"),
    col("next_load", float, "the lowest measured load that does not keep it; NaN where all do"),
    col("next_ms_high", float, "upper end of the interval of its latency"),
    col("next_saturated", bool, "whether that one saturates the service"),
    col("source", str, 'of `interpolated`: interpolated; "" where it is NaN'),
    col("why", str, "why there is no load, or no more; in a sentence"),
    col("launches", int, "of the load that keeps the limit"),
    *usual("platform machine"),
    rule="analyse",
    estimate="explanations.services:loads",
    asked=capabilities.LATENCY,
)
