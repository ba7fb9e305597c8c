"""The data contract of what tables on traced steps begin with: which trace a row is of, or which scene of a study."""

from castmates.results.columns.contract import col, usual

# Which trace a row is of: the first columns of what profile launches leave.
TRACE = (
    *usual("study cohort launch scene"),
    col("kind", str, "alone, corun"),
    col("mix", str, 'lead and antagonists, joined by +; "" where the scene serves several'),
    *usual("partition member round"),
)

# Which scene a row is of, over all launches.
SCENE = (
    *usual("study scene"),
    col("kind", str, "alone, corun"),
    col("mix", str, 'lead and antagonists, joined by +; "" where the scene serves several'),
    *usual("partition member platform"),
)
