"""Reads a trace, whichever framework wrote it."""

from collections.abc import Mapping
from pathlib import Path

from castmates.traces.chrome import read_json
from castmates.traces.memory import Memory, read_memory
from castmates.traces.operations import Reading, Trace, read_trace, tensorflow
from castmates.traces.thunks import jax
from castmates.traces.xspace import Plane

FILES = ("*.xplane.pb", "*.pt.trace.json.gz")  # what profilers write: TensorFlow's and JAX's, PyTorch's

JSON = ".json"


def read(path: Path) -> tuple[Trace, Memory]:
    """Read the calls and allocations in the steps of a trace; what is wrong with the file is a sentence."""
    if JSON in path.suffixes:
        return read_json(path)
    trace = read_trace(path, _reading)
    return trace, read_memory(path, trace)


def _reading(planes: Mapping[str, Plane]) -> Reading | None:
    return jax(planes) or tensorflow(planes)
