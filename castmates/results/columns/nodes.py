"""The data contract of what each node of a class came to."""

from castmates.results.columns.contract import Table, col, interval, usual
from castmates.study import capabilities

NODES = Table(
    "nodes",
    "tables/nodes.csv: what each node of a class came to; a row per node and row of the effects, and per node and"
    " control. Empty where all of a class was measured on one node.",
    *usual("study"),
    col(
        "machine", str, "the class of nodes, or the model of their processor where a study has none and several models"
    ),
    col("host", str, "the node"),
    col("processor", str, "its model"),
    col("control", str, 'A/A, positive, negative; "" for an effect'),
    *usual("mix lead antagonists member role partition baseline"),
    *interval("slowdown", "over the launches on this node", "95 % between launches; NaN below three launches"),
    *interval("loss_pct"),
    *usual("launches rounds"),
    col(
        "p_value", float, "that the nodes of this effect do not differ, the same in all its rows; of a control its own"
    ),
    col("p_holm", float, "adjusted over the effects of this baseline; over the controls of all nodes"),
    col("verdict", str, "nodes differ, no difference seen, not compared; of a control as in controls"),
    *usual("platform"),
    rule="analyse",
    estimate="effects.effects:estimate_nodes",
    asked=capabilities.CLASSES,
)
