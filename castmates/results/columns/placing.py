"""The data contract of placement advice."""

from castmates.results.columns.contract import Table, col, interval, usual

GROUPINGS = Table(
    "groupings",
    "place/groupings.csv: the best ways to divide jobs among last-level caches; a row per grouping × job.",
    *usual("study"),
    col("rank", int, "1 is the best"),
    col("domain", int, "the last-level cache"),
    col("job", str, "a workload"),
    col("beside", str, 'the other jobs around this cache, joined by "+"'),
    col("cores", int, "physical ones that it takes"),
    col("ways", int | None, "that no other job fills; NA where the jobs around this cache share all ways"),
    col("mask", str, "of these ways, in hexadecimal digits"),
    *interval(
        "loss_pct",
        "of its rate when alone",
        "95 %: that of effects or predictions; composed of pairs, without how far the rule is off",
    ),
    col("source", str, "measured, predicted; alone (nobody is beside it)"),
    col("limit_pct", float, "NaN where it has none"),
    col("keeps", str, 'the limit, by the upper end: kept, not shown, exceeded; "" without a limit'),
    *interval(
        "fresh_pct", "what fresh launches found; NaN where this was not measured yet", "95 % between these launches"
    ),
    col(
        "agrees",
        str,
        'fresh launches with the loss above: agrees, loses more, loses less, too few launches; "" without',
    ),
    col(
        "confirmation",
        str,
        'of the limit, by fresh launches: confirmed, exceeded, unclear, too few launches; "" without',
    ),
    col("confirmed_in", str, "the study of these launches"),
    *usual("platform machine"),
)

WAYS = Table(
    "ways",
    "place/ways.csv: what jobs lose in the best groupings, at random and by spreading; a row per way × kind of job.",
    *usual("study"),
    col("way", str, "best, second, third; random; spreading (each job where most cores are free)"),
    col("job", str, '"" for all of them'),
    col("jobs", int, "how many of this kind there are"),
    col("groupings", int, "over which the mean is; 1 of the best ones"),
    col("unknown", int, "groupings that were drawn too, and of which some loss is not known"),
    col("loss_pct", float, "mean over jobs and groupings"),
    col("loss_p5", float, "of groupings: 5 and 95 per cent of them have a smaller mean over the jobs"),
    col("loss_p95", float, "the other end"),
    col("stp", float, "what all jobs get done, in jobs that are alone; NaN for a kind of job"),
    col("gain_pct", float, "by how much the best grouping's is above it"),
    col("exceeded", float, "jobs whose loss is above their limit, on average"),
    col("predicted", float, "share of the losses that is not measured"),
    col("domains", float, "in use, on average; NaN for a kind of job"),
    *usual("platform machine"),
)
