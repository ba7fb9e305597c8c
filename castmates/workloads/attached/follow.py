"""Begins to follow a program, before its first line: what is to be done when it imports a framework."""

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from castmates.workloads import heartbeat
from castmates.workloads.attached import jax, keras, torch, tracing
from castmates.workloads.attached.pulse import FRAMEWORK, Pulse, Status, say, writer_of

KERAS = ("keras", "tf_keras")
LOOKS = 0.5  # seconds between two looks at what the program does, while `castmates profile` tries it


def begin() -> None:
    """Wait for frameworks; nothing at all where nobody listens."""
    if not os.environ.get(heartbeat.VARIABLE):
        return
    status, graphs, others = Status(), tracing.Graphs(), dict[str, Any]()
    wanted, only = os.environ.get(keras.VARIABLE, ""), os.environ.get(FRAMEWORK, "")
    pulse = Pulse(status, partial(tracing.chosen, status, graphs, others), only)
    trainer = keras.Followed(pulse, status, graphs, others)
    others |= {"torch": torch.Followed(pulse, status), "jax": jax.Followed(pulse, status, wanted)}

    def tensorflow_is_here(tf: ModuleType) -> None:
        status.note(tensorflow=str(getattr(tf, "__version__", "")))
        if wanted or status.wanted:
            keras.patch(tf, wanted, pulse, status, graphs)

    actions = {"tensorflow": tensorflow_is_here, "jax": others["jax"].patch, "optax": jax.name_optimizers}
    if not wanted:
        actions |= {"torch": others["torch"].patch} | dict.fromkeys(KERAS, trainer.patch)
    after_imports({name: _safely(action) for name, action in actions.items()})
    atexit.register(_last_words, pulse, status, wanted)
    status.note()
    if status.wanted:
        threading.Thread(target=_look, args=[status, threading.main_thread().ident], daemon=True).start()


def _look(status: Status, main: int) -> None:
    """Note, until a framework is imported, whether the program still imports."""
    while not status.framework:
        time.sleep(LOOKS)
        frame = sys._current_frames().get(main)
        while frame is not None and "importlib" not in frame.f_code.co_filename:
            frame = frame.f_back
        status.note(imports=frame is not None)


def _safely(action: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def safe(module: ModuleType) -> None:
        try:
            action(module)
        except Exception as error:  # the program goes on, whatever it is
            say(f"{module.__name__} is not followed: {type(error).__name__}: {error}")

    return safe


def _last_words(pulse: Pulse, status: Status, wanted: str) -> None:
    """A program that ends while it is measured has made all its steps: what to do about it."""
    path = Path(os.environ[heartbeat.VARIABLE])
    if not status.framework or not pulse.own or not path.exists() or (not pulse.steps and writer_of(str(path))):
        return  # a helper of the process whose steps are counted
    status.note()
    what = f"calls of {wanted}" if wanted else "training steps"
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
            try:
                _add(action, spec.loader)
            except AttributeError as error:  # a loader of another kind, which takes nothing more
                say(f"{fullname} is not followed: {error}")
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
