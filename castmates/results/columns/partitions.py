"""The data contract of partitions: what shares of the cache do, and which one is recommended."""

from collections.abc import Mapping

from castmates.results.columns.block import Columns
from castmates.results.columns.services import LOADS

# tables/sensitivity.csv: how fast each lead is with so many ways, alone and beside each antagonist; a row per partition
# that gives the lead separate ways.
SENSITIVITY: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",  # "" where the lead is alone
    "member": "str",
    "curve": "str",  # the kind of partition: its name without the lead's ways
    "partition": "str",
    "lead_ways": "int64",
    "lead_bytes": "float64",  # what they hold in one cache; NaN where the machine does not report it
    "shared_ways": "Int64",  # of these, ways that I/O fills too; NA where that is not known
    "rate_pct": "float64",  # of its solo rate with all ways
    "rate_low": "float64",  # 95 % between launches; NaN below three blocks
    "rate_high": "float64",
    "within_low": "float64",  # 95 % within launch
    "within_high": "float64",
    "blocks": "int64",
    "rounds": "int64",
    "platform": "str",
    "held": "str",  # what the processor held: as asked, otherwise, uncertain, not read, shared with …
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/knees.csv: the smallest number of ways from which on a lead keeps 95 % of its solo rate; a row per curve.
KNEES: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "member": "str",
    "curve": "str",
    "kept_pct": "float64",  # what counts as kept
    "knee": "Int64",  # NA where no measured number of ways keeps it
    "knee_low": "Int64",  # 95 %; NA where every measured number is shown to be too small
    "knee_high": "Int64",  # NA where no measured number is shown to be enough
    "fewest_ways": "int64",  # that were measured
    "most_ways": "int64",
    "points": "int64",  # with an interval between launches
    "blocks": "int64",  # of the point that has fewest
    "verdict": "str",  # known, between, at least, not reached, too few launches
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/pareto.csv: what a lead loses and what its antagonists keep under every partition of a mix.
PARETO: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "partition": "str",
    "lead_ways": "Int64",
    "lead_bytes": "float64",
    "stage": "str",  # search; confirmed: fresh blocks of another study, which measure this partition alone
    "source": "str",  # the study that the blocks are of
    "loss_pct": "float64",  # of the lead against solo
    "loss_low": "float64",
    "loss_high": "float64",
    "kept_pct": "float64",  # mean over the antagonists of their rate against being alone
    "kept_low": "float64",
    "kept_high": "float64",
    "stp": "float64",  # system throughput: sum of all members' rates over their own alone
    "stp_low": "float64",
    "stp_high": "float64",
    "frontier": "bool",  # no other partition of the same stage loses less and keeps more, as estimated
    "blocks": "int64",
    "refused": "int64",  # blocks of a confirming study that do not count
    "why_refused": "str",
    "design": "str",  # of a confirming study: how its counted blocks were measured otherwise than the search's
    "platform": "str",
    "held": "str",  # what the processor held: as asked, otherwise, uncertain, not read, shared with …; "" without one
    "machine": "str",  # the class of nodes; "" in a study without classes
    "freedom": "float64",  # degrees of freedom of the interval of the loss; NaN where there is none
}

# tables/recommendations.csv: the lead mask that is advised, the smallest that keeps the wanted limit or, without a
# limit, the knee; a row per mix of several members.
RECOMMENDATIONS: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "limit_pct": "float64",  # the wanted one; without one the loss that a knee allows
    "verdict": "str",  # met, knee; without advice: not needed, loss not proven, not met, too few launches, no sweep
    "partition": "str",  # where the limit is not met the one that comes nearest; "" where none is needed
    "lead_ways": "Int64",
    "lead_bytes": "float64",
    "cache_ways": "Int64",
    "loss_pct": "float64",
    "loss_low": "float64",
    "loss_high": "float64",
    "bound_pct": "float64",  # upper bound of the loss, adjusted for the kinds of partition that were looked at
    "confidence": "float64",  # of that bound, one-sided
    "masks": "int64",  # that were looked at
    "kinds": "int64",  # of partition among them
    "larger_beyond": "int64",  # where the limit is not met: larger masks of the same kind that miss it too
    "blocks": "int64",
    "kept_pct": "float64",
    "kept_low": "float64",
    "kept_high": "float64",
    "stp": "float64",
    "stp_low": "float64",
    "stp_high": "float64",
    "confirmation": "str",  # confirmed, exceeded, can't tell yet, too few launches, not confirmed yet; "" if unmet
    "confirmed_in": "str",  # the confirming study
    "confirmed_loss_pct": "float64",
    "confirmed_loss_low": "float64",
    "confirmed_loss_high": "float64",
    "confirmed_kept_pct": "float64",
    "confirmed_kept_low": "float64",
    "confirmed_kept_high": "float64",
    "confirmed_stp": "float64",
    "confirmed_stp_low": "float64",
    "confirmed_stp_high": "float64",
    "confirmed_blocks": "int64",
    "confirmed_studies": "int64",  # of this mix and partition; the one with most blocks is shown
    "confirmed_design": "str",  # how it measured otherwise than the search
    "platform": "str",
    "held": "str",  # what the processor held: as asked, otherwise, uncertain, not read, shared with …; "" without one
    "machine": "str",  # the class of nodes; "" in a study without classes
    "aim": "str",  # limit, knee
    "without_pct": "float64",  # the loss without a partition
    "without_low": "float64",
    "without_high": "float64",
    "faster": "float64",  # how many times as fast the lead is as without a partition
    "faster_low": "float64",
    "faster_high": "float64",
}

# tables/curves.csv: what a lead loses over the amount of one thing that partitions give out, where looks decided how
# much of that was measured (`budget.adaptive`); a row per cell, no rows of other studies.
CURVES: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",  # "" where the lead is alone
    "member": "str",
    "curve": "str",  # the kind of partition: its name with # in the place of the amount
    "unit": "str",  # of the amount: ways, ways of the others, quota (in per cent), bandwidth of the others
    "partition": "str",
    "amount": "float64",  # that the partition gives, in this unit
    "loss_pct": "float64",  # of the lead against solo
    "loss_low": "float64",  # measured: 95 % between launches; interpolated: the bound that its measured neighbours give
    "loss_high": "float64",
    "blocks": "int64",  # launches that measured it; 0 where none did
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
    "source": "str",  # measured, interpolated, or unknown: beyond what was measured
}

# What recommend_partitions leaves.
PARTITION_TABLES: Mapping[str, Columns] = {
    "sensitivity": SENSITIVITY,
    "knees": KNEES,
    "pareto": PARETO,
    "recommendations": RECOMMENDATIONS,
    "loads": LOADS,
    "curves": CURVES,
}
