"""Traces the steps of the program when it is asked to, by the profiler of the framework that it uses."""

import os
import sys
from typing import Any

from castmates.workloads.attached.pulse import Status, Tracer, say
from castmates.workloads.tfmodels.profile_page import PageError
from castmates.workloads.tfmodels.profiling import Profiler, graph_wanted
from castmates.workloads.tfmodels.step_graph import StepGraph

TRACES_ITSELF = "nother profiler"  # TensorFlow's words where a session goes on


class _TensorFlow(Profiler):
    """TensorFlow's profiler, in a program that is not ours."""

    def _whole(self, seconds: float) -> dict[str, Any]:
        found = super()._whole(seconds)
        threads = [number or len(os.sched_getaffinity(0)) for number in found["threads"]]  # 0: one per CPU
        return found | {"threads": threads, "versions": versions()}

    def _answer(self, content: dict[str, Any]) -> None:
        if TRACES_ITSELF in str(content.get("error", "")):
            content = {"error": "the program traces itself at that time; switch that off, as by profile_batch=0"}
        super()._answer(content)


class Graphs:
    """Collects the graphs that TensorFlow makes from the first step to the end of the warm-up.

    Not earlier: to collect them fixes settings of TensorFlow that a program may change before it computes.
    """

    def __init__(self) -> None:
        self.step: StepGraph | None = None

    def begin(self) -> None:
        """Begin where whole traces will be asked for."""
        if "tensorflow" in sys.modules and not _other_backend():
            self.step = graph_wanted(sys.modules["tensorflow"])


def chosen(status: Status, graphs: Graphs) -> Tracer | None:
    """The tracer of the framework that is imported; None where there is none, or no trace is ever asked for."""
    if "tensorflow" not in sys.modules or _other_backend():
        say("steps cannot be traced: the program does not train by TensorFlow.")
        return None
    status.note(traceable=True, versions=versions())
    try:
        return _TensorFlow.wanted(sys.modules["tensorflow"], graphs.step)
    except PageError as error:
        say(str(error))
        return None


def versions() -> dict[str, str]:
    """Of Python and of the frameworks that are imported."""
    found = {name: getattr(sys.modules.get(name), "__version__", "") for name in ("tensorflow", "keras", "tf_keras")}
    return {"python": sys.version.split()[0], **{name: version for name, version in found.items() if version}}


def _other_backend() -> bool:
    """Whether Keras 3 trains by another framework."""
    backend = getattr(getattr(sys.modules.get("keras"), "backend", None), "backend", None)
    return callable(backend) and backend() != "tensorflow"
