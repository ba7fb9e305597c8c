"""Ranges inside a TensorFlow function, each with the range of its gradient.

    embedding = GraphRange("embedding")  # outside of the function

    @tf.function
    def step(batch):
        ...
        x = embedding.end(layer(embedding.begin(x)))

    step(batch)
    write(step_number)  # after each step

The clock is read under control dependencies, as in marks.py; Python is not called inside a step. Where nobody keeps
ranges, the function is the same as without them. docs/phases.md has what this costs, and what TensorFlow may reorder.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tensorflow as tf

from castmates.workloads.phases import open_writer
from castmates.workloads.tfmodels.marks import passed_after
from castmates.workloads.tfmodels.phases import on_steady_clock

DOMAIN = "graph"
Tensors = TypeVar("Tensors")
_BEGIN, _END, _GRADIENT_BEGIN, _GRADIENT_END = range(4)
_all: list["GraphRange"] = []


class GraphRange:
    """A range of a function; its gradient's range has the same name with ` gradient` behind it, or the one given."""

    def __init__(self, name: str, gradient: str | None = None, domain: str = DOMAIN) -> None:
        self.name, self.gradient, self.domain = name, gradient or f"{name} gradient", domain
        self._written = [0.0] * 4
        self._kept: Sequence[tf.Variable] = ()
        if open_writer().keeps_ranges:
            self._kept = [tf.Variable(0.0, dtype=tf.float64, trainable=False) for _ in range(4)]
            _all.append(self)

    def begin(self, tensors: Tensors) -> Tensors:
        """Begin when all of these are known; what is made of the result lies in the range."""
        return self._marked(tensors, _BEGIN, _GRADIENT_END)

    def end(self, tensors: Tensors) -> Tensors:
        """End when all of these are known; what is made of the result comes after it."""
        return self._marked(tensors, _END, _GRADIENT_BEGIN)

    def around(self, function: Callable[[Tensors], Tensors]) -> Callable[[Tensors], Tensors]:
        """Put the range around a function or layer of one argument."""
        return lambda tensors: self.end(function(self.begin(tensors)))

    def write(self, step: int | None = None) -> None:
        """Write what of it has run since the last time."""
        stamps = [float(one.numpy()) for one in self._kept]
        for name, begin, end in ((self.name, _BEGIN, _END), (self.gradient, _GRADIENT_BEGIN, _GRADIENT_END)):
            if self._kept and self._written[begin] != stamps[begin] and stamps[begin] <= stamps[end]:
                begin_ns, end_ns = on_steady_clock([stamps[begin], stamps[end]])
                open_writer().range(name, begin_ns, end_ns, step, self.domain)
        self._written = stamps

    def _marked(self, tensors: Tensors, forward: int, backward: int) -> Tensors:
        """The same tensors, at which the clock is read; and it is read again at their gradients."""
        if not self._kept:
            return tensors
        parts = tf.nest.flatten(tensors)

        @tf.custom_gradient
        def identity(*given: Any) -> tuple[Any, Callable[..., Any]]:
            def gradient(*found: Any) -> Any:
                return passed_after(list(found), self._kept[backward].assign)

            return passed_after(list(given), self._kept[forward].assign), gradient

        return tf.nest.pack_sequence_as(tensors, identity(*parts))


def write(step: int | None = None) -> None:
    """Write every range that has run since the last time; call it after each step."""
    for one in _all:
        one.write(step)
