"""The data contract of trials: what the advice of a finding gave in fresh launches."""

from castmates.results.columns.contract import Table, col, interval, usual

GAINS = Table(
    "gains",
    "tables/gains.csv of the study of a trial: a row for the lead alone, and one beside each of its antagonists.",
    *usual("study lead"),
    col("changed", str, "the lead after its change"),
    col("beside", str, 'its antagonists, joined by "+"; "" for alone'),
    *usual("unit"),
    col("rate", float, "of the lead as it is: geometric mean over launches"),
    col("changed_rate", float, "of the changed lead, in steps of its own"),
    col("work", float, "how many times the work of a step that the changed lead does in one"),
    *interval(
        "gain_pct",
        "by how much more work a second the changed lead does",
        "95 % between launches; NaN below three launches of either",
    ),
    col("launches", int, "launches of the lead as it is"),
    col("changed_launches", int, "launches of the changed one"),
    *usual("p_value"),
    col("p_holm", float, "adjusted over the rows of the trial"),
    col("verdict", str, "gain, loss, no loss, unclear, too few launches"),
    *usual("platform"),
)
