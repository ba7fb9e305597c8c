"""What our own jobs take for options that a workload does not set."""

from collections.abc import Sequence

from castmates.study.trying import option_of
from castmates.workloads.jaxjobs.shapes import SHAPES as JAX
from castmates.workloads.tfmodels.jobs import SHAPES as TENSORFLOW
from castmates.workloads.torchjobs.shapes import SHAPES as TORCH

Word = str | bool | int | float
BATCHES = {
    "castmates.workloads.tfmodels": {key: shape.batch for key, shape in TENSORFLOW.items()},
    "castmates.workloads.torchjobs": {key: shape.batch for key, shape in TORCH.items()},
    "castmates.workloads.jaxjobs": {key: shape.batch for key, shape in JAX.items()},
}
OF_TENSORFLOW: dict[str, Word] = {"onednn": "on", "precision": "float32", "xla": False}


def usual_options(command: Sequence[str], cpus: int) -> dict[str, Word]:
    """The options of a job of ours and their usual values; nothing is known of other programs."""
    program = next((word for word in command if word in BATCHES), "")
    if not program:
        return {}
    batch = BATCHES[program].get((option_of(command, "model") or "", option_of(command, "size") or "tiny"))
    is_tensorflow = program == "castmates.workloads.tfmodels"
    source = ("records" if option_of(command, "data") else "memory") if is_tensorflow else "pipeline"
    threads: Word = option_of(command, "threads") or cpus
    of_tensorflow = OF_TENSORFLOW | {"inter-threads": threads} if is_tensorflow else {}
    known: dict[str, Word] = {"threads": cpus, "source": source, **of_tensorflow}
    return known | ({} if batch is None else {"batch": batch})
