"""The marks inside a TensorFlow step leave the gradients that models take themselves; with as much of it as is called.

tests/runner/test_tfmodels.py has them in the real one.
"""

import contextlib
import importlib.util
import sys
import types

import pytest


class Tape:
    """Gives back what its gradient was asked for; of a model that recomputes, after asking for one within."""

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        if sources == "recomputed":
            return "inner", Tape().gradient("tensor 2", "x"), Tape().gradient(["y"], "x", output_gradients=["dy"])
        return target, sources, output_gradients, unconnected_gradients


@pytest.fixture
def marks(monkeypatch):
    """The module, loaded with names of TensorFlow's: tensors are strings."""
    tf = types.ModuleType("tensorflow")
    tf.GradientTape, tf.Tensor, tf.Variable, tf.timestamp = Tape, str, object, lambda: "mark"
    tf.is_tensor = lambda what: isinstance(what, str)
    tf.ones_like = lambda what: f"ones like {what}"
    tf.identity = lambda what: what
    tf.control_dependencies = lambda _: contextlib.nullcontext()
    tf.nest = types.SimpleNamespace(flatten=lambda found, **_: list(found), map_structure=lambda *words, **_: words[1])
    monkeypatch.setitem(sys.modules, "tensorflow", tf)
    found = importlib.util.find_spec("castmates.workloads.tfmodels.marks")
    module = importlib.util.module_from_spec(found)  # nobody else meets this one
    found.loader.exec_module(module)
    return module


def test_the_gradient_of_a_step_has_two_marks_and_a_seed_after_the_first(marks):
    kept, before = [], Tape.gradient
    with marks.gradient_marked(kept.append):
        assert Tape().gradient("loss", "x", unconnected_gradients="zero") == ("loss", "x", "ones like loss", "zero")
    assert kept == ["mark", "mark"]
    assert Tape.gradient is before


@pytest.mark.parametrize(
    ("words", "more"),
    [(("y", "x"), {"output_gradients": "dy"}), (("y", "x", "dy"), {}), ((["y"], "x"), {"output_gradients": ["dy"]})],
)
def test_a_gradient_from_one_that_is_known_is_left_as_it_is(marks, words, more):
    kept = []
    expected = Tape().gradient(*words, **more)
    with marks.gradient_marked(kept.append):
        assert Tape().gradient(*words, **more) == expected
        assert Tape().gradient(["y", "z"], "x") == (["y", "z"], "x", None, "none")
    assert kept == []


def test_gradients_within_the_steps_gradient_are_not_marked(marks):
    kept = []
    with marks.gradient_marked(kept.append):
        assert Tape().gradient("loss", "recomputed") == (
            "inner", ("tensor 2", "x", None, "none"), (["y"], "x", ["dy"], "none"))  # fmt: skip
        assert Tape().gradient("loss", "x")[2] == "ones like loss", "the next one is marked again"
    assert kept == ["mark"] * 4
