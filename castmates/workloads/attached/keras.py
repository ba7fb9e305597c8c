"""Follows the training of Keras 2 and 3: each call of a model's train function is a step, and `fit` does not end.

The train function is what `fit` and `train_on_batch` call, in the thread that trains. A callback would change the
program: Keras 3 runs callbacks beside the training where none of them looks at batches.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from castmates.workloads.attached import jax, torch
from castmates.workloads.attached.pulse import Pulse, Status, say
from castmates.workloads.attached.tracing import Graphs

EPOCHS = 1_000_000  # more than any launch sees
BATCH = 32  # that Keras makes of arrays where it is told nothing
XLA = "CASTMATES_XLA"  # off: models are not compiled by XLA unless their program asks for it


class Followed:
    """The model whose steps are counted: the first that trains."""

    def __init__(self, pulse: Pulse, status: Status, graphs: Graphs, others: Mapping[str, Any]) -> None:
        self.pulse = pulse
        self._graphs = graphs
        self._others = others  # who follows the other frameworks, by which Keras 3 may train
        self._status = status
        self._model: Any = None
        self._batch = 0  # that `fit` makes of arrays; 0: it is given another thing

    def patch(self, keras: ModuleType) -> None:
        """Follow the models of this Keras."""
        model = getattr(keras, "Model", None)
        if not inspect.isclass(model) or not hasattr(model, "make_train_function"):
            say(f"this {keras.__name__} has no Model whose steps can be followed.")
            return
        self._status.note(keras=f"{keras.__name__} {getattr(keras, '__version__', '')}".strip())
        kind: Any = model
        kind.make_train_function = self._counting(keras, kind.make_train_function)
        kind.fit = self._going_on(kind.fit)
        optimizer: Any = getattr(getattr(keras, "optimizers", None), "Optimizer", None)
        if hasattr(optimizer, "apply"):
            optimizer.apply = self._marking(keras, optimizer.apply)
        if os.environ.get(XLA) == "off":
            kind.compile = _without_xla(kind.compile)

    def follows(self, model: object) -> bool:
        """Whether this model's steps are counted, or will be."""
        return self.pulse.own and (self._model is None or self._model is model)

    def _counting(self, keras: ModuleType, make: Callable[..., Any]) -> Callable[..., Any]:
        followed = self

        @functools.wraps(make)
        def make_train_function(model: Any, *words: Any, **more: Any) -> Any:
            made = make(model, *words, **more)
            function = getattr(model, "train_function", None)
            if callable(function) and not hasattr(function, "castmates_step"):
                model.train_function = followed._counted(keras, model, function)
            return model.train_function if made is function and made is not None else made

        return make_train_function

    def _counted(self, keras: ModuleType, model: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def step(*words: Any, **more: Any) -> Any:
            backend = backend_of(keras)
            if backend == "tensorflow":
                self._graphs.begin(words, self._batch)
            by = f"keras/{backend}"
            if self._model is None:
                self.pulse.claim(by)
            found = function(*words, **more)
            if self._model is None:
                self._model = model
            if self._model is model:
                if backend == jax.NAME and self.pulse.takes(by):
                    with self.pulse.carefully():
                        self._others[jax.NAME].has_returned(found)
                self.pulse.step(by)
            return found

        step.castmates_step = True  # type: ignore[attr-defined]
        return step

    def _marking(self, keras: ModuleType, apply: Callable[..., Any]) -> Callable[..., Any]:
        """Let the optimizer's operations be known as such; TensorFlow's have its name."""

        @functools.wraps(apply)
        def marked(optimizer: Any, *words: Any, **more: Any) -> Any:
            backend = backend_of(keras)
            mark: Any = nullcontext()
            if backend == jax.NAME:
                mark = sys.modules[jax.NAME].named_scope(jax.SCOPE)
            elif backend == torch.NAME:
                mark = self._others[torch.NAME].optimizing(optimizer)
            with mark:
                return apply(optimizer, *words, **more)

        return marked

    def _going_on(self, fit: Callable[..., Any]) -> Callable[..., Any]:
        """Let training go on until the launch is over: a program that ends cannot be put beside others."""
        signature = inspect.signature(fit)
        followed = self

        @functools.wraps(fit)
        def going_on(*words: Any, **more: Any) -> Any:
            try:
                given = signature.bind(*words, **more)
            except TypeError:
                return fit(*words, **more)  # which complains
            if not followed.follows(given.args[0]):
                return fit(*words, **more)
            if isinstance(given.arguments.get("x"), list | tuple | dict) or hasattr(given.arguments.get("x"), "dtype"):
                followed._batch = int(given.arguments.get("batch_size") or BATCH)
            given.arguments["epochs"] = int(given.arguments.get("initial_epoch") or 0) + EPOCHS
            while True:
                before = followed.pulse.steps
                found = fit(*given.args, **given.kwargs)
                if followed.pulse.steps == before:
                    return found  # its data is used up

        return going_on


def backend_of(keras: ModuleType | None) -> str:
    """By what a Keras trains: Keras 2 by TensorFlow."""
    backend = getattr(getattr(keras, "backend", None), "backend", None)
    return str(backend()) if callable(backend) else "tensorflow"


def _without_xla(compile_: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(compile_)

    @functools.wraps(compile_)
    def compile_plainly(*words: Any, **more: Any) -> Any:
        try:
            given = signature.bind(*words, **more)
        except TypeError:
            return compile_(*words, **more)  # which complains
        if "jit_compile" in signature.parameters and given.arguments.get("jit_compile", "auto") == "auto":
            given.arguments["jit_compile"] = False
        return compile_(*given.args, **given.kwargs)

    return compile_plainly


# Follows a training loop of the program: each call of the function of TensorFlow that is named is a step.

VARIABLE = "CASTMATES_STEP"  # names the function


def patch(tf: ModuleType, wanted: str, pulse: Pulse, status: Status, graphs: Graphs) -> None:
    """Count the calls that come from Python, and not those within another function's graph."""
    module: Any = tf
    kind: Any = type(module.function(_nothing))
    call = kind.__call__
    if kind.__module__ == "builtins":
        say("the functions of this TensorFlow cannot be followed.")
        return

    @functools.wraps(call)
    def counted(function: Any, *words: Any, **more: Any) -> Any:
        name = _name(function)
        is_step = bool(wanted) and (name == wanted or name.endswith(f".{wanted}"))
        if is_step and module.executing_eagerly():
            graphs.begin([words, more])
        found = call(function, *words, **more)
        if is_step:
            if module.executing_eagerly():
                pulse.step("tensorflow")
        elif status.wanted and module.executing_eagerly():
            status.called(name)
        return found

    kind.__call__ = counted


def _nothing() -> None:
    """A function to see of which class those of TensorFlow are."""


def _name(function: Any) -> str:
    """Its name in the program."""
    inner: Callable[..., Any] = getattr(function, "python_function", function)
    return str(getattr(inner, "__qualname__", type(inner).__name__)).replace("<locals>.", "")
