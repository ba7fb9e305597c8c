"""Follows a training loop of JAX: each call of the compiled function that takes most of the time is a step.

JAX has no trainer to ask. What `jax.jit` and `jax.pmap` return is wrapped, and so are programs compiled ahead; calls
that are part of another one's compilation do not count. JAX returns from a call before its result is there: the program
may be one step ahead as it goes, and none while steps are traced.
"""

import functools
import sys
import threading
import time
import types
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from castmates.workloads.attached.pulse import Pulse, Status

NAME = "jax"
TIMED = 6  # calls of a function after its first one, which compiles: then the one that took most time is the step
OTHERS = 30  # calls of other functions without one of the step's: then the step is chosen again, until it is ready
SCOPE = "optimizer"  # that operations of optax get


class Followed:
    """The function whose calls are counted."""

    def __init__(self, pulse: Pulse, status: Status, wanted: str) -> None:
        self._pulse, self._status, self._wanted = pulse, status, wanted
        self._jax: Any = None
        self._here = threading.local()
        self._times: dict[int, list[float]] = {}  # by function: seconds of its calls, until the step is chosen
        self._chosen: int | None = None
        self._others = 0  # calls since the last one of the step
        self._last: list[Any] = []  # results of the last step that were not there when it returned
        self.exact = False  # while steps are traced: a step is over when its result is there

    def patch(self, jax: ModuleType) -> None:
        """Follow what this JAX compiles."""
        self._jax = jax
        self._status.note(jax=str(getattr(jax, "__version__", "")))
        for name in ("jit", "pmap"):
            setattr(jax, name, self._wrapping(getattr(jax, name)))
        ahead = jax.stages.Compiled
        ahead.__call__ = self._calling(ahead.__call__)

    def _wrapping(self, make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def made(*words: Any, **more: Any) -> Any:
            found = make(*words, **more)
            if hasattr(found, "lower"):
                return Compiled(found, self)
            return lambda *words, **more: Compiled(found(*words, **more), self)  # a decorator with its options

        return made

    def _calling(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def called(program: Any, *words: Any, **more: Any) -> Any:
            return self.call(id(program), "compiled ahead", functools.partial(call, program), words, more)

        return called

    def call(self, function: int, name: str, call: Callable[..., Any], words: Any, more: Any) -> Any:
        """Call a function, and count that if it is a step."""
        if getattr(self._here, "inside", False) or not self._pulse.takes(NAME):
            return call(*words, **more)
        self._here.inside = True
        begin = time.perf_counter()
        try:
            found = call(*words, **more)
        finally:
            self._here.inside = False
        with self._pulse.carefully():  # results may be anything, tracers too
            if self._is_step(function, name, found, begin):
                self._step(found)
        return found

    def _is_step(self, function: int, name: str, found: Any, begin: float) -> bool:
        if self._status.wanted:
            self._status.called(name)
        if self._wanted:
            return name == self._wanted or name.endswith(f".{self._wanted}")
        if self._chosen is None:
            self._choose(function, found, begin)
            return False
        self._others = 0 if function == self._chosen else self._others + 1
        if self._others >= OTHERS and not self._pulse.ready:
            self._chosen, self._times, self._others = None, {}, 0
        return function == self._chosen

    def _choose(self, function: int, found: Any, begin: float) -> None:
        """Time a call to the end of its work, and choose where one function has been called often enough."""
        self._wait(_awaited(self._jax, found))
        times = self._times.setdefault(function, [])
        times.append(time.perf_counter() - begin)
        if len(times) > TIMED:
            spent = {one: sum(each[1:]) for one, each in self._times.items()}
            self._chosen = max(spent, key=spent.__getitem__)

    def _step(self, found: Any) -> None:
        self.has_returned(found)
        self._pulse.step(NAME)

    def has_returned(self, found: Any) -> None:
        """Let the program be one step ahead of this result at most, and not at all while steps are traced."""
        awaited = _awaited(self._jax, found)
        if not self._wait(self._last) or self.exact:
            self._wait(awaited)
        self._last = awaited

    def wait(self) -> None:
        """Wait until the last step's work is done."""
        self._wait(self._last)

    @staticmethod
    def _wait(results: list[Any]) -> bool:
        """Wait for one of them: all of a step are there at once. False where all are given away to a later step."""
        for each in results:
            if not _is_deleted(each):  # asked first: a refusal takes long, and there may be thousands
                with suppress(RuntimeError):
                    each.block_until_ready()
                    return True
        return not results


def _awaited(jax: Any, found: Any) -> list[Any]:
    """The arrays of a result that are still computed: others may be arguments that are returned as they are."""
    arrays = [each for each in jax.tree_util.tree_leaves(found) if hasattr(each, "block_until_ready")]
    known = [each for each in arrays if hasattr(each, "is_ready")]  # keys of random numbers do not say
    # To ask one that was deleted whether it is ready ends the program with a fault of memory.
    return [each for each in known if not _is_deleted(each) and not each.is_ready()] if known else arrays


def _is_deleted(array: Any) -> bool:
    """Whether it was given away to a later step."""
    return bool(hasattr(array, "is_deleted") and array.is_deleted())


def _handed_on(name: str) -> Callable[..., Any]:
    def method(compiled: Any, *words: Any, **more: Any) -> Any:
        return getattr(compiled._castmates_inner, name)(*words, **more)

    return method


class Compiled:
    """A compiled function, whose calls are followed; all else is as it was."""

    def __init__(self, inner: Any, followed: Followed) -> None:
        functools.update_wrapper(self, inner)
        self.__wrapped__ = getattr(inner, "__wrapped__", inner)  # the function that is not compiled, as in JAX
        self._castmates_inner, self._castmates_followed = inner, followed
        self._castmates_name = str(getattr(inner, "__qualname__", type(inner).__name__)).replace("<locals>.", "")

    def __call__(self, *words: Any, **more: Any) -> Any:
        """Call it."""
        return self._castmates_followed.call(id(self), self._castmates_name, self._castmates_inner, words, more)

    def __get__(self, instance: object, _owner: object = None) -> Any:
        """Be a method where it is one of a class."""
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_castmates"):
            raise AttributeError(name)
        return getattr(self._castmates_inner, name)

    def __copy__(self, _memo: object = None) -> "Compiled":
        """Stay itself, as a function does."""
        return self

    __deepcopy__ = __copy__

    # JAX's protocol of such functions asks for these methods, in their class.
    lower, trace, eval_shape = map(_handed_on, ("lower", "trace", "eval_shape"))


def name_optimizers(optax: ModuleType) -> None:
    """Let operations of optax have a scope: compiled code is the same, and its metadata name the optimizer."""
    jax: Any = sys.modules[NAME]
    base: Any = optax.GradientTransformation

    def scoped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*words: Any, **more: Any) -> Any:
            with jax.named_scope(SCOPE):
                return function(*words, **more)

        inside.castmates_scope = True  # type: ignore[attr-defined]
        return inside

    plain = base.__new__

    def new(kind: Any, init: Any, update: Any) -> Any:
        known = hasattr(update, "castmates_scope") or not callable(update)
        return plain(kind, init, update if known else scoped(update))

    base.__new__ = new
    changed: Any = optax
    changed.apply_updates = scoped(changed.apply_updates)
