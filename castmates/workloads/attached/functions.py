"""Follows a training loop of the program: each call of the function of TensorFlow that is named is a step."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from castmates.workloads.attached.pulse import Pulse
from castmates.workloads.attached.status import Status, say

VARIABLE = "CASTMATES_STEP"  # names the function


def patch(tf: ModuleType, wanted: str, pulse: Pulse, status: Status) -> None:
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
            pulse.begins()
        found = call(function, *words, **more)
        if is_step:
            if module.executing_eagerly():
                pulse.step()
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
