"""Reports the phase of its work that a job is in: `with phase("forward", step=i):` (standard library, Python 3.10 on).

Where no runner listens, nothing happens. Ranges of `start` and `end`, instants, epochs, domains and payloads are kept
where the study asks for ranges. docs/phases.md has the rules and, for other languages, the file.
"""

import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from castmates.workloads.phase_file import VARIABLE, PhasesError
from castmates.workloads.phase_writer import Handle, Writer

__all__ = ["Handle", "PhasesError", "Writer", "end", "epoch", "instant", "mark", "open_writer", "phase", "start"]

_NOT_A_CALL = 0x20 | 0x80 | 0x200  # code flags of generators and coroutines, which return before they run
Function = TypeVar("Function", bound=Callable[..., Any])


class phase:  # noqa: N801  (it reads like a statement)
    """A phase: `with phase("forward", step=i):`, or `@phase("forward")` for a function that is one.

    The phases of a `domain` that has a name are no parts of the step. The `payload` is a short text, or what JSON can
    write in 64 bytes: `{"shape": [8, 128]}`.
    """

    __slots__ = ("_domain", "_name", "_payload", "_step")

    def __init__(self, name: str, step: int | None = None, *, domain: str = "", payload: object = None) -> None:
        self._name, self._step = name, step
        self._domain, self._payload = domain, payload

    def __enter__(self) -> None:
        writer = _state.writer
        if writer is _unopened:
            writer = _opened()
        if writer is not None:
            writer.begin(self._name, self._step, False, self._domain, self._payload)

    def __exit__(self, *_: object) -> None:
        writer = _state.writer
        if writer is not None and writer is not _unopened:
            writer.end(self._domain)

    def __call__(self, function: Function) -> Function:
        """Wrap a function so that each of its calls is this phase."""
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & _NOT_A_CALL:
            raise PhasesError(
                f"@phase('{self._name}') stands before a generator or a coroutine, which returns before it runs: put "
                "`with phase(...)` inside it."
            )

        @functools.wraps(function)
        def inside(*words: Any, **more: Any) -> Any:  # noqa: ANN401
            with self:
                return function(*words, **more)

        return inside  # type: ignore[return-value]


def mark(name: str | None = None, step: int | None = None) -> None:
    """Begin a phase that lasts until the next mark, or until the phase around it ends; without a name just end it."""
    writer = _state.writer
    if writer is _unopened:
        writer = _opened()
    if writer is not None:
        writer.mark(name, step)


class epoch:  # noqa: N801
    """An epoch: `with epoch(3):` around its steps, whatever threads work on them."""

    __slots__ = ("_handle", "_number")

    def __init__(self, number: int) -> None:
        self._number = number
        self._handle: Handle | None = None

    def __enter__(self) -> None:
        writer = _listener()
        self._handle = None if writer is None else writer.epoch(self._number)

    def __exit__(self, *_: object) -> None:
        end(self._handle)


def start(name: str, step: int | None = None, *, domain: str = "", payload: object = None) -> Handle | None:
    """Begin a range that lasts until `end` is called with what this returns, in any function or thread."""
    writer = _listener()
    return None if writer is None else writer.start(name, step, domain, payload)


def end(handle: Handle | None) -> None:
    """End the range that `start` has begun; None is none."""
    writer = _listener()
    if writer is not None:
        writer.finish(handle)


def instant(name: str, step: int | None = None, *, domain: str = "", payload: object = None) -> None:
    """Report that something happens at this moment."""
    writer = _listener()
    if writer is not None:
        writer.instant(name, step, domain, payload)


class _State:
    """The writer of this process: not opened yet, or None without a listener."""

    writer: Writer | None


_unopened = Writer(None)
_state = _State()
_state.writer = _unopened
_opening = threading.Lock()


def open_writer() -> Writer:
    """The writer of this process, or one that does nothing."""
    with _opening:
        if _state.writer is _unopened:
            opened = Writer(os.environ.get(VARIABLE) or None)
            _state.writer = opened if opened.listened_to else None
        return _state.writer or Writer(None)


def _opened() -> Writer | None:
    """Open the file that the runner named; what is wrong with it is reported once, and the job goes on without."""
    try:
        open_writer()
    except PhasesError as error:
        print(error, file=sys.stderr)
        _state.writer = None
    return _state.writer


def _listener() -> Writer | None:
    """The writer of this process; None without a listener."""
    return _opened() if _state.writer is _unopened else _state.writer


def reopen() -> None:
    """Look at the environment again when the next phase begins; for those who set the variable themselves."""
    _state.writer = _unopened


def _forget() -> None:
    """A child process does not write into its parent's file."""
    _state.writer = None


os.register_at_fork(after_in_child=_forget)
