"""The graph of a job's step is taken once, and collecting it ends, whatever goes wrong."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from castmates.workloads.tfmodels.step_graph import StepGraph


class Collecting:
    """The part of TensorFlow's context that hands out graphs, with what goes wrong in it."""

    def __init__(self, *failing: str) -> None:
        self.failing, self.on, self.stopped = failing, False, 0

    def enable_graph_collection(self) -> None:
        self.on = True

    def export_run_metadata(self) -> SimpleNamespace:
        if "export" in self.failing:
            raise RuntimeError("no metadata\nmore")
        return SimpleNamespace(function_graphs=[])

    def disable_graph_collection(self) -> None:
        self.stopped += 1
        if "disable" in self.failing:
            raise RuntimeError("it goes on")
        self.on = False


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        ((), "no graph was made in the first step"),
        (("export",), "its graph cannot be taken (no metadata)"),
        (("disable",), "no graph was made in the first step"),
        (("export", "disable"), "its graph cannot be taken (no metadata)"),
    ],
)
def test_collecting_ends_whatever_goes_wrong(monkeypatch, failing, reason):
    context = Collecting(*failing)
    for name in ("tensorflow", "tensorflow.python"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    eager = ModuleType("tensorflow.python.eager")
    eager.context = SimpleNamespace(context=lambda: context)
    monkeypatch.setitem(sys.modules, eager.__name__, eager)
    taking = StepGraph(None)
    assert context.on
    assert taking.taken() == {"reason": reason}
    assert context.stopped == 1
    assert context.on == ("disable" in failing)
