"""Traces the steps of the program when it is asked to, by the profiler of the framework that makes them."""

import gc
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from castmates.workloads.attached.pulse import FRAMEWORKS, Status, Tracer, say
from castmates.workloads.jobs.tracing import Profiler as WholeTraces
from castmates.workloads.tfmodels.profile_page import PageError
from castmates.workloads.tfmodels.profiling import Profiler, graph_wanted
from castmates.workloads.tfmodels.step_graph import StepGraph

TRACES_ITSELF = (
    "nother profiler",
    "rofiler is already",
    "rofile has already",
    "one profile",
)  # where a session goes on


class _TensorFlow(Profiler):
    """TensorFlow's profiler, in a program that is not ours."""

    def _whole(self, seconds: float) -> dict[str, Any]:
        found = super()._whole(seconds)
        named = [os.environ.get(f"TF_NUM_{pool}OP_THREADS", "") for pool in ("INTRA", "INTER")]
        cpus = len(os.sched_getaffinity(0))  # as many as it has where it is told 0, and no variable says how many
        each = zip(found["threads"], named, strict=True)
        threads = [number or int(name if name.isdecimal() else 0) or cpus for number, name in each]
        return found | {"threads": threads, "versions": versions()}

    def _answer(self, content: dict[str, Any]) -> None:
        super()._answer(_plain(content, "profile_batch=0"))


class _Others(WholeTraces):
    """The profiler of PyTorch or JAX, in a program that is not ours."""

    def _answer(self, content: dict[str, object]) -> None:
        super()._answer(_plain(content | {"versions": versions()}, "a schedule without an active step"))


def _plain(content: dict[str, Any], how: str) -> dict[str, Any]:
    if any(words in str(content.get("error", "")) for words in TRACES_ITSELF):
        return {"error": f"the program traces itself at that time; switch that off, as by {how}"}
    return content


class Graphs:
    """Collects the graphs that TensorFlow makes from the first step to the end of the warm-up.

    Not earlier: to collect them fixes settings of TensorFlow that a program may change before it computes.
    """

    def __init__(self) -> None:
        self.step: StepGraph | None = None
        self._begun = False

    def begin(self, arguments: Any, batch: int = 0) -> None:
        """Begin before the first step, where whole traces will be asked for."""
        if not self._begun and "tensorflow" in sys.modules:
            self._begun = True
            self.step = graph_wanted(sys.modules["tensorflow"])
            if self.step is not None:
                self.step.called_with(arguments, batch)


def chosen(status: Status, graphs: Graphs, followed: Mapping[str, Any], framework: str) -> Tracer | None:
    """The tracer of the framework that makes the steps; None where no trace is ever asked for."""
    if framework not in FRAMEWORKS or framework not in sys.modules:
        say(f"steps cannot be traced: the program trains by {framework}.")
        return None
    status.note(traceable=True, versions=versions())
    try:
        if framework == "tensorflow":
            return _TensorFlow.wanted(sys.modules["tensorflow"], graphs.step)
        return _Others.wanted(partial(TRACERS[framework], followed[framework]))
    except PageError as error:
        say(str(error))
        return None


def versions() -> dict[str, str]:
    """Of Python and of the frameworks that are imported."""
    names = (*FRAMEWORKS, "keras", "tf_keras", "optax", "flax", "equinox", "lightning", "transformers")
    found = {name: getattr(sys.modules.get(name), "__version__", "") for name in names}
    return {"python": sys.version.split()[0], **{name: version for name, version in found.items() if version}}


def _torch(followed: Any) -> Any:
    """PyTorch's profiler: operations with their shapes, memory, and marks around modules, optimizers and data."""
    from castmates.workloads.torchjobs.tracing import ModuleTracer

    class Attached(ModuleTracer):
        """It finds the modules that there are, and has the steps of optimizers marked."""

        shapes = True

        def start(self, folder: Path) -> None:
            torch = sys.modules["torch"]
            self.modules = modules_of(torch)
            super().start(folder)
            followed.mark = torch.profiler.record_function

        def stop(self) -> None:
            followed.mark = None
            super().stop()

    return Attached()


WRAPPERS = {"OptimizedModule": "_orig_mod", "DataParallel": "module", "DistributedDataParallel": "module"}


def modules_of(torch: Any) -> dict[str, Any]:
    """By their paths: the modules of this process, each below the class of the outermost one that it is part of."""
    kind, scripted = torch.nn.Module, torch.jit.ScriptModule
    every = [each for each in gc.get_objects() if issubclass(type(each), kind) and "_modules" in vars(each)]
    every = [each for each in every if not isinstance(each, scripted)]
    inside = {id(child) for each in every for child in each._modules.values()}
    paths: dict[str, Any] = {}
    for root in every:
        if id(root) in inside:
            continue
        core = root
        while (inner := core._modules.get(WRAPPERS.get(type(core).__name__, ""))) is not None:
            core = inner
        name = _unused(type(core).__name__, paths)
        paths[name] = core
        paths |= {f"{name}/{path.replace('.', '/')}": child for path, child in core.named_modules() if path}
    return paths


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    number = 2
    while name in taken and f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}" if name in taken else name


def _jax(followed: Any) -> Any:
    """JAX's profiler, from the end of one step's work to the end of another's."""
    from castmates.workloads.jaxjobs.tracing import Profile

    class Attached(Profile):
        """It has each step waited for."""

        def start(self, folder: Path) -> None:
            followed.wait()
            followed.exact = True
            super().start(folder)

        def stop(self) -> None:
            followed.exact = False
            super().stop()

    return Attached()


TRACERS = {"torch": _torch, "jax": _jax}
