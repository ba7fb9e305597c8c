"""Runs tasks side by side in processes that begin with all that this process has read: nothing is sent to them."""

import ctypes
import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from castmates.errors import CastmatesError

PR_SET_PDEATHSIG = 1
_TASKS: dict[str, Callable[[], Any]] = {}  # as a process finds them when it is forked


def side_by_side(tasks: Mapping[str, Callable[[], Any]], jobs: int) -> dict[str, Any]:
    """What each task returns, so many at a time, in their order; where one is refused, the others still end."""
    if min(jobs, len(tasks)) <= 1:
        return _outcomes({name: _tried(task) for name, task in tasks.items()})
    _TASKS.update(tasks)
    try:
        with ProcessPoolExecutor(
            min(jobs, len(tasks)), mp_context=get_context("fork"), initializer=_end_with, initargs=(os.getpid(),)
        ) as processes:
            begun = {name: processes.submit(_run, name) for name in tasks}
            return _outcomes({name: task.result() for name, task in begun.items()})
    except BrokenProcessPool:
        raise CastmatesError(
            f"One of the processes for {', '.join(tasks)} was ended from outside: for want of memory, perhaps; with "
            "`snakemake --cores 1` they are made one after the other."
        ) from None
    finally:
        _TASKS.clear()


def _end_with(parent: int) -> None:
    """End when the process that wants the results does: nobody else would end this process."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _run(name: str) -> Any:  # noqa: ANN401 (what the task returns)
    return _tried(_TASKS[name])


def _tried(task: Callable[[], Any]) -> Any:  # noqa: ANN401
    try:
        return task()
    except CastmatesError as problem:
        return problem


def _outcomes(results: dict[str, Any]) -> dict[str, Any]:
    refused = [str(result) for result in results.values() if isinstance(result, CastmatesError)]
    if refused:
        raise CastmatesError(" ".join(dict.fromkeys(refused)))
    return results
