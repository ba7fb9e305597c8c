"""The data contract of the table of means over mixes."""

from castmates.results.columns.block import Columns

# tables/system_over_mixes.csv: the same over the mixes that `mixes` makes: random ones, pairs, groups; a row per set ×
# number of antagonists × partition × metric. Empty in a study without such a set.
SYSTEM_OVER_MIXES: Columns = {
    "study": "str",
    "set": "str",  # random, pairs, groups
    "neighbours": "Int64",  # antagonists of these mixes; NA: all of the set, whatever their number
    "partition": "str",
    "metric": "str",  # STP, ANTT, harmonic speedup, unfairness, max slowdown, Jain
    "value": "float64",  # geometric mean over the mixes
    "low": "float64",  # 95 % between launches, of these mixes; NaN below three blocks or three mixes
    "high": "float64",
    "all_value": "float64",  # over all mixes that could have been drawn; NaN where none were drawn
    "all_low": "float64",  # 95 % between mixes and launches, of that
    "all_high": "float64",
    "how": "str",  # by which members (each mix by who is in it), by size (too few mixes for that); "" for no value
    "freedom": "float64",  # degrees of freedom of the interval over mixes
    "mixes": "int64",  # that have a value
    "mixes_of": "int64",  # that the study asks for
    "possible": "Int64",  # different mixes that could have been drawn; NA where none were drawn
    "blocks": "int64",  # launches, over all mixes
    "platform": "str",
    "possibly_biased": "bool",  # in some mix, as in system
    "machine": "str",  # the class of nodes; "" in a study without classes
}
