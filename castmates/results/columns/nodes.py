"""The data contract of what each node of a class came to."""

from castmates.results.columns.block import Columns

# tables/nodes.csv: what each node of a class came to; a row per node and row of the effects, and per node and control.
# Empty where all of a class was measured on one node.
NODES: Columns = {
    "study": "str",
    "machine": "str",  # the class of nodes, or the model of their processor where a study has none and several models
    "host": "str",  # the node
    "processor": "str",  # its model
    "control": "str",  # A/A, positive, negative; "" for an effect
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "member": "str",
    "role": "str",
    "partition": "str",
    "baseline": "str",
    "slowdown": "float64",  # over the launches on this node
    "slowdown_low": "float64",  # 95 % between launches; NaN below three blocks
    "slowdown_high": "float64",
    "degradation_pct": "float64",  # 100 × (1 - 1/slowdown)
    "degradation_low": "float64",
    "degradation_high": "float64",
    "blocks": "int64",
    "rounds": "int64",
    "p_value": "float64",  # that the nodes of this effect do not differ, the same in all its rows; of a control its own
    "p_holm": "float64",  # adjusted over the effects of this baseline; over the controls of all nodes
    "verdict": "str",  # nodes differ, no difference seen, not compared; of a control as in controls
    "platform": "str",
}
