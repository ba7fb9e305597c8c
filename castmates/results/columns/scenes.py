"""The data contract of what tables on traced steps begin with: which trace a row is of, or which scene of a study."""

from castmates.results.columns.block import Columns

# Which trace a row is of: the first columns of what profile launches leave.
TRACE: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",  # number of the profile launch within its company, from 1
    "scene": "str",
    "kind": "str",  # solo, corun
    "mix": "str",  # lead and antagonists, joined by +; "" where the scene serves several
    "partition": "str",
    "member": "str",
    "round": "int64",  # of the scene's trace in its launch, from 1
}

# Which scene a row is of, over all launches.
SCENE: Columns = {
    "study": "str",
    "scene": "str",
    "kind": "str",  # solo, corun
    "mix": "str",  # lead and antagonists, joined by +; "" where the scene serves several
    "partition": "str",
    "member": "str",
    "platform": "str",
}
