"""The data contract of predictions: what pairs lose that were not measured, and how far predictions are off."""

from castmates.results.columns.block import Columns

# tables/predictions.csv: a row per lead × antagonists of the grid of `predict`, and of what was measured beside it.
PREDICTIONS: Columns = {
    "study": "str",
    "lead": "str",
    "antagonists": "str",  # joined by "+"
    "partition": "str",  # unmanaged: nothing is predicted under partitions
    "part": "str",  # grid; profile (with a bubble or a reporter); check (kept from the fit); several (antagonists)
    "loss_pct": "float64",  # of the rate when alone: 100 × (1 - 1/slowdown); NaN where nothing can be predicted
    "loss_low": "float64",  # 95 %: measured between launches, predicted for a further measurement; NaN where none
    "loss_high": "float64",
    "how": "str",  # measured as lead, as antagonist; predicted from pairs, from pairs together; "" where unknown
    "blocks": "int64",  # launches that measured it
    "without_pct": "float64",  # where it was measured: the prediction without the mix of these workloads
    "without_low": "float64",
    "without_high": "float64",
    "error": "float64",  # without_pct - loss_pct, in points
    "platform": "str",  # of what was measured, which predictions follow from
    "machine": "str",  # the class of nodes; "" in a study without classes
    "source": "str",  # measured, predicted; "" where unknown
}

# tables/profiles.csv: the sensitivity and the pressure of each workload; a row per workload × bubble or reporter. The
# equivalents are derived: no dial was set to them.
PROFILES: Columns = {
    "study": "str",
    "workload": "str",
    "profile": "str",  # sensitivity (its loss beside a bubble), pressure (a reporter's loss beside it)
    "other": "str",  # the bubble, the reporter
    "loss_pct": "float64",  # as in predictions
    "loss_low": "float64",
    "loss_high": "float64",
    "blocks": "int64",
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
    "source": "str",  # measured, predicted; "" where unknown
    "equivalent_mib": "float64",  # of pressure: the capacity dial beside which the reporter would lose as much; or NaN
    "equivalent_gb_s": "float64",  # the bandwidth dial: interpolated between two measured settings, 1e9 bytes a second
}
