"""The data contract of the table of means over mixes."""

from castmates.results.columns.contract import Table, col, interval, usual
from castmates.study import capabilities

SYSTEM_OVER_MIXES = Table(
    "system_over_mixes",
    "tables/system_over_mixes.csv: the same over the mixes that `mixes` makes: random ones, pairs, groups; a row "
    "per set × number of antagonists × partition × metric. Empty in a study without such a set.",
    *usual("study"),
    col("set", str, "random, pairs, groups"),
    col("antagonists", int | None, "antagonists of these mixes; NA: all of the set, whatever their number"),
    *usual("partition"),
    col("metric", str, "STP, ANTT, harmonic speedup, unfairness, max slowdown, Jain"),
    *interval(
        "value",
        "geometric mean over the mixes",
        "95 % between launches, of these mixes; NaN below three launches or three mixes",
        stem="",
    ),
    *interval(
        "all_value",
        "over all mixes that could have been drawn; NaN where none were drawn",
        "95 % between mixes and launches, of that",
        stem="all",
    ),
    col("how", str, 'by which members (each mix by who is in it), by size (too few mixes for that); "" for no value'),
    col("freedom", float, "degrees of freedom of the interval over mixes"),
    col("mixes", int, "that have a value"),
    col("mixes_of", int, "that the study asks for"),
    col("possible", int | None, "different mixes that could have been drawn; NA where none were drawn"),
    col("launches", int, "launches, over all mixes"),
    *usual("platform"),
    col("possibly_biased", bool, "in some mix, as in system"),
    *usual("machine"),
    rule="analyse",
    estimate="effects.system_over_mixes:system_over_mixes",
    asked=capabilities.SETS,
)
