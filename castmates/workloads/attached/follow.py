"""Begins to follow a program, before its first line: what is to be done when it imports a framework."""

import atexit
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from castmates.workloads import heartbeat
from castmates.workloads.attached import keras, tracing
from castmates.workloads.attached.pulse import Pulse, Status, say, writer_of

KERAS = ("keras", "tf_keras")


def begin() -> None:
    """Wait for TensorFlow and Keras; nothing at all where nobody listens."""
    if not os.environ.get(heartbeat.VARIABLE):
        return
    status = Status()
    graphs = tracing.Graphs()
    pulse = Pulse(status, partial(tracing.chosen, status, graphs), graphs.begin)
    followed, wanted = keras.Followed(pulse, status), os.environ.get(keras.VARIABLE, "")

    def tensorflow_is_here(tf: ModuleType) -> None:
        status.note(tensorflow=str(getattr(tf, "__version__", "")))
        atexit.register(_last_words, pulse, status, wanted)
        if wanted or status.wanted:
            keras.patch(tf, wanted, pulse, status)

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


# Has something done right after a module was imported, by whomever and whenever that is; standard library only.

Action = Callable[[ModuleType], None]


class _Finder(MetaPathFinder):
    """Lets Python's own finders find a module, and adds the action to the end of its import."""

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self._actions = dict(actions)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Give the module's own specification."""
        action = self._actions.get(fullname)
        spec = None if action is None else self._others(fullname, path, target)
        if action is not None and spec is not None and spec.loader is not None:
            _add(action, spec.loader)
        return spec

    def _others(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        finders = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        found = (finder.find_spec(fullname, path, target) for finder in finders)
        return next((spec for spec in found if spec is not None), None)


def _add(action: Action, loader: object) -> None:
    """Have the action done once; the loader stays what it is, because some packages look at theirs."""
    run = loader.exec_module  # type: ignore[attr-defined]

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module  # type: ignore[attr-defined]
        run(module)
        action(module)

    loader.exec_module = exec_module  # type: ignore[attr-defined]


def after_imports(actions: Mapping[str, Action]) -> None:
    """Do each of these after the import of the module of its name; an action must not raise."""
    sys.meta_path.insert(0, _Finder(actions))
