"""Begins to follow a program, before its first line: what is to be done when it imports a framework."""

import atexit
import os
from collections.abc import Callable
from functools import partial
from types import ModuleType

from castmates.workloads import heartbeat
from castmates.workloads.attached import functions, keras, tracing
from castmates.workloads.attached.pulse import Pulse, writer_of
from castmates.workloads.attached.status import Status, say
from castmates.workloads.attached.watch import after_imports

KERAS = ("keras", "tf_keras")


def begin() -> None:
    """Wait for TensorFlow and Keras; nothing at all where nobody listens."""
    if not os.environ.get(heartbeat.VARIABLE):
        return
    status = Status()
    graphs = tracing.Graphs()
    pulse = Pulse(status, partial(tracing.chosen, status, graphs), graphs.begin)
    followed, wanted = keras.Followed(pulse, status), os.environ.get(functions.VARIABLE, "")

    def tensorflow_is_here(tf: ModuleType) -> None:
        status.note(tensorflow=str(getattr(tf, "__version__", "")))
        atexit.register(_last_words, pulse, status, wanted)
        if wanted or status.wanted:
            functions.patch(tf, wanted, pulse, status)

    actions = {"tensorflow": _safely(tensorflow_is_here)}
    if not wanted:
        actions |= dict.fromkeys(KERAS, _safely(followed.patch))
    after_imports(actions)
    status.note()


def _safely(action: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def safe(module: ModuleType) -> None:
        try:
            action(module)
        except Exception as error:  # the program goes on, whatever it is
            say(f"{module.__name__} is not followed: {type(error).__name__}: {error}")

    return safe


def _last_words(pulse: Pulse, status: Status, wanted: str) -> None:
    """A program that ends while it is measured has made all its steps: what to do about it."""
    if not pulse.own or (not pulse.steps and writer_of(os.environ[heartbeat.VARIABLE])):
        return  # a helper of the process whose steps are counted
    status.note()
    what = f"calls of {wanted}" if wanted else "training steps of Keras"
    say(f"the program has ended after {pulse.steps} {what}; a launch needs one that goes on, as with more epochs.")
