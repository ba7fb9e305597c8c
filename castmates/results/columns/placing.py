"""The data contract of placement advice: add columns at the end, never rename or reorder."""

from collections.abc import Mapping

from castmates.results.columns.block import Columns

# place/groupings.csv: the best ways to divide jobs among last-level caches; a row per grouping × job.
GROUPINGS: Columns = {
    "study": "str",
    "rank": "int64",  # 1 is the best
    "domain": "int64",  # the last-level cache
    "job": "str",  # a workload
    "beside": "str",  # the other jobs around this cache, joined by "+"
    "cores": "int64",  # physical ones that it takes
    "ways": "Int64",  # that no other job fills; NA where the jobs around this cache share all ways
    "mask": "str",  # of these ways, in hexadecimal digits
    "loss_pct": "float64",  # of its rate when alone
    "loss_low": "float64",  # 95 %: that of effects or predictions; composed of pairs, without how far the rule is off
    "loss_high": "float64",
    "source": "str",  # measured, predicted; alone (nobody is beside it)
    "limit_pct": "float64",  # NaN where it has none
    "keeps": "str",  # the limit, by the upper end: kept, not shown, exceeded; "" without a limit
    "fresh_pct": "float64",  # what fresh launches found; NaN where this was not measured yet
    "fresh_low": "float64",  # 95 % between these launches
    "fresh_high": "float64",
    "agrees": "str",  # fresh launches with the loss above: agrees, loses more, loses less, too few launches; "" without
    "confirmation": "str",  # of the limit, by fresh launches: confirmed, exceeded, can't tell yet, too few launches, ""
    "confirmed_in": "str",  # the study of these launches
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# place/ways.csv: what jobs lose in the best groupings, at random and by spreading; a row per way × kind of job.
WAYS: Columns = {
    "study": "str",
    "way": "str",  # best, second, third; random; spreading (each job where most cores are free)
    "job": "str",  # "" for all of them
    "jobs": "int64",  # how many of this kind there are
    "groupings": "int64",  # over which the mean is; 1 of the best ones
    "unknown": "int64",  # groupings that were drawn too, and of which some loss is not known
    "loss_pct": "float64",  # mean over jobs and groupings
    "loss_p5": "float64",  # of groupings: 5 and 95 per cent of them have a smaller mean over the jobs
    "loss_p95": "float64",  # the other end
    "stp": "float64",  # what all jobs get done, in jobs that are alone; NaN for a kind of job
    "gain_pct": "float64",  # by how much the best grouping's is above it
    "exceeded": "float64",  # jobs whose loss is above their limit, on average
    "predicted": "float64",  # share of the losses that is not measured
    "domains": "float64",  # in use, on average; NaN for a kind of job
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}
PLACING_TABLES: Mapping[str, Columns] = {"groupings": GROUPINGS, "ways": WAYS}
