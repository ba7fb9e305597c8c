"""Reads a trace, whichever framework wrote it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.traces.chrome import read_json
from castmates.traces.devices import DeviceCall, Memory, read_devices, read_memory
from castmates.traces.operations import Reading, Trace, read_trace, tensorflow
from castmates.traces.stages import Stage, read_stages
from castmates.traces.thunks import jax
from castmates.traces.xspace import Plane

FILES = ("*.xplane.pb", "*.pt.trace.json.gz")  # what profilers write: TensorFlow's and JAX's, PyTorch's

JSON = ".json"


@dataclass(frozen=True)
class Found:
    """What a trace shows of a job's steps."""

    trace: Trace
    memory: Memory
    stages: Sequence[Stage] = ()  # of the input pipeline
    devices: Sequence[DeviceCall] = ()


def read(path: Path) -> Found:
    """Read what a trace has of its steps; what is wrong with the file is a sentence."""
    if JSON in path.suffixes:
        return Found(*read_json(path))
    trace = read_trace(path, _reading)
    return Found(trace, read_memory(path, trace), read_stages(path, trace), read_devices(path, trace))


def _reading(planes: Mapping[str, Plane]) -> Reading | None:
    return jax(planes) or tensorflow(planes)
