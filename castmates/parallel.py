"""Runs tasks side by side in processes that begin with all that this one has read: nothing is sent to them."""

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from castmates.errors import CastmatesError
from castmates.linux.end_with_parent import end_with_parent

_TASKS: dict[str, Callable[[], Any]] = {}  # as a process finds them when it is forked


def side_by_side(tasks: Mapping[str, Callable[[], Any]], jobs: int) -> dict[str, Any]:
    """What each task returns, so many at a time, in the order given; one that is refused keeps no other from ending."""
    if min(jobs, len(tasks)) <= 1:
        return _outcomes({name: _tried(task) for name, task in tasks.items()})
    _TASKS.update(tasks)
    try:
        with ProcessPoolExecutor(
            min(jobs, len(tasks)), mp_context=get_context("fork"), initializer=end_with_parent()
        ) as processes:
            begun = {name: processes.submit(_run, name) for name in tasks}
            return _outcomes({name: one.result() for name, one in begun.items()})
    except BrokenProcessPool:
        raise CastmatesError(
            f"One of the processes for {', '.join(tasks)} was ended from outside: for want of memory, perhaps; with "
            "`snakemake --cores 1` they are made one after the other."
        ) from None
    finally:
        _TASKS.clear()


def _run(name: str) -> Any:  # noqa: ANN401 (what the task returns)
    return _tried(_TASKS[name])


def _tried(task: Callable[[], Any]) -> Any:  # noqa: ANN401
    try:
        return task()
    except CastmatesError as problem:
        return problem


def _outcomes(found: dict[str, Any]) -> dict[str, Any]:
    refused = [str(one) for one in found.values() if isinstance(one, CastmatesError)]
    if refused:
        raise CastmatesError(" ".join(dict.fromkeys(refused)))
    return found
