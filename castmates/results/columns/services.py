"""The data contract of what is made of open-loop services."""

from castmates.results.columns.block import Columns

# tables/services.csv: a row per member that is an open-loop service, scene and platform.
SERVICES: Columns = {
    "study": "str",
    "service": "str",  # members of one service differ in their load alone
    "member": "str",
    "workload": "str",
    "role": "str",
    "load": "float64",  # requests per second that its command offers; those that were due where it names none
    "kind": "str",
    "scene": "str",
    "mix": "str",  # "" where the scene serves several mixes
    "antagonists": "str",  # joined by "+", with their distance after ":" where the mix has one
    "partition": "str",
    "offered": "float64",  # requests per second that were due; mean over windows
    "answered": "float64",  # answers per second in the same time
    "answered_share": "float64",  # of the load: geometric mean over blocks
    "share_low": "float64",  # 95 % between launches
    "share_high": "float64",
    "unanswered": "float64",  # share of the requests that were not answered when their slice ended
    "saturated": "bool",  # it answers less than 97 % of the load: latencies grow for as long as that lasts
    "p50_ms": "float64",  # from when a request was due; geometric mean over blocks; NaN where it is not known
    "p50_ms_low": "float64",  # 95 % between launches
    "p50_ms_high": "float64",
    "p50_ratio": "float64",  # over that of the baseline in the same launch, as in latency.csv
    "p50_ratio_low": "float64",  # 95 % between launches
    "p50_ratio_high": "float64",
    "p95_ms": "float64",  # the same of another quantile
    "p95_ms_low": "float64",  # 95 % between launches
    "p95_ms_high": "float64",
    "p95_ratio": "float64",  # over that of the baseline in the same launch
    "p95_ratio_low": "float64",  # 95 % between launches
    "p95_ratio_high": "float64",
    "p99_ms": "float64",  # what the service is judged by
    "p99_ms_low": "float64",  # 95 % between launches
    "p99_ms_high": "float64",
    "p99_ratio": "float64",  # over that of the baseline in the same launch
    "p99_ratio_low": "float64",  # 95 % between launches
    "p99_ratio_high": "float64",
    "blocks": "int64",
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/loads.csv: the highest load that keeps the study's limit on a latency; a row per service, neighbours and
# partition. What lies between two measured loads is interpolated, and stamped as that.
LOADS: Columns = {
    "study": "str",
    "service": "str",  # members of one service differ in their load alone
    "antagonists": "str",  # "" alone
    "partition": "str",
    "quantile": "str",  # p50, p95, p99
    "limit_ms": "float64",  # of the study
    "load": "float64",  # highest measured load, in requests per second, that keeps it with all lower ones; NaN for none
    "load_ms": "float64",  # its latency there
    "load_ms_high": "float64",  # upper end of its interval: what is held against the limit
    "interpolated": "float64",  # load at which that end reaches the limit; NaN where that is not between two loads
    "next_load": "float64",  # the lowest measured load that does not keep it; NaN where all do
    "next_ms_high": "float64",  # upper end of the interval of its latency
    "next_saturated": "bool",  # whether that one saturates the service
    "source": "str",  # of `interpolated`: interpolated; "" where it is NaN
    "why": "str",  # why there is no load, or no more; in a sentence
    "blocks": "int64",  # of the load that keeps the limit
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}
