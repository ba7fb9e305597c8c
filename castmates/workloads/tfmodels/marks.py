"""Reads the clock inside a step, without changing what the step computes.

Splitting a step into separate calls costs up to 40 %. Reading the clock under control dependencies inside the one
function leaves the package's own step as it is, and what it does between the marks in place.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from castmates.workloads.tfmodels.phases import StepPhases, on_steady_clock

Keep = Callable[[tf.Tensor], Any]  # what is done with a mark


@contextlib.contextmanager
def gradient_marked(keep: Keep) -> Iterator[None]:
    """Read the clock before and after the gradient of the step that is traced meanwhile.

    The gradients that models take of their own layers, which they recompute (RevNet, BigBird), are left as they are:
    they begin from a gradient that is known, or lie within the step's.
    """
    original = tf.GradientTape.gradient
    within = False

    def gradient(tape: Any, target: Any, sources: Any, output_gradients: Any = None, *rest: Any, **more: Any) -> Any:
        nonlocal within
        if within or output_gradients is not None or not tf.is_tensor(target):
            return original(tape, target, sources, output_gradients, *rest, **more)
        before = stamp_after([target], keep)
        with tf.control_dependencies([before]):
            seed = tf.ones_like(target)
        within = True
        try:
            found = original(tape, target, sources, seed, *rest, **more)
        finally:
            within = False
        return passed_after(found, keep)

    tf.GradientTape.gradient = gradient
    try:
        yield
    finally:
        tf.GradientTape.gradient = original


def stamp_after(tensors: list[Any], keep: Keep) -> tf.Tensor:
    """Read the clock when all of these are known."""
    with tf.control_dependencies(tensors):
        mark = tf.timestamp()
    keep(mark)
    return mark


def passed_after(found: Any, keep: Keep) -> Any:
    """Read the clock when all of this is known, and let go on with it only after that."""
    parts = [part for part in tf.nest.flatten(found, expand_composites=True) if part is not None]
    with tf.control_dependencies([stamp_after(parts, keep)]):
        return tf.nest.map_structure(
            lambda part: None if part is None else tf.identity(part), found, expand_composites=True
        )


def marked_loop(trainer: Any, loop: Callable[[Any, Any], None], written: StepPhases) -> Callable[[Any, Any], None]:
    """Mark the steps of the package's own Trainer, whose training loop this is, for one step at a time."""
    if not hasattr(type(trainer), "next_train_inputs"):
        return loop
    # The marks leave the loop, which is compiled and gives nothing back, in variables.
    kept = [tf.Variable(0.0, dtype=tf.float64, trainable=False) for _ in ("begin", "input", "loss", "gradient")]

    def run(iterator: Any, steps: Any) -> None:
        # A gradient has two marks, and the loop may be traced more than once. Of several gradients the last one counts.
        turns = itertools.cycle(kept[2:])
        with _input_marked(type(trainer), kept[:2]), gradient_marked(lambda mark: next(turns).assign(mark)):
            loop(iterator, steps)
        end = time.monotonic_ns()
        written.step([*on_steady_clock([float(one.numpy()) for one in kept]), end])

    return run


@contextlib.contextmanager
def _input_marked(trainer: Any, kept: Sequence[tf.Variable]) -> Iterator[None]:
    """Read the clock before and after the input of the step that is traced meanwhile."""
    fetch = trainer.next_train_inputs

    def marked_fetch(one: Any, iterator: Any) -> Any:
        with tf.control_dependencies([stamp_after([], kept[0].assign)]):
            inputs = fetch(one, iterator)
        return passed_after(inputs, kept[1].assign)

    trainer.next_train_inputs = marked_fetch
    try:
        yield
    finally:
        trainer.next_train_inputs = fetch
