"""Runs tasks side by side in processes that begin with all that this process has read: nothing is sent to them."""

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from castmates.errors import CastmatesError
from castmates.linux.end_with_parent import end_with_parent

_TASKS: dict[str, Callable[[], Any]] = {}  # as a process finds them when it is forked


def side_by_side(tasks: Mapping[str, Callable[[], Any]], jobs: int) -> dict[str, Any]:
    """What each task returns, so many at a time, in their order; where one is refused, the others still end."""
    if min(jobs, len(tasks)) <= 1:
        return _outcomes({name: _tried(task) for name, task in tasks.items()})
    _TASKS.update(tasks)
    try:
        with ProcessPoolExecutor(
            min(jobs, len(tasks)), mp_context=get_context("fork"), initializer=end_with_parent()
        ) as processes:
            begun = {name: processes.submit(_run, name) for name in tasks}
            return _outcomes({name: task.result() for name, task in begun.items()})
    except BrokenProcessPool:
        raise CastmatesError(
            f"One of the processes for {', '.join(tasks)} was ended from outside, perhaps because memory ran out; "
            "`snakemake --cores 1` runs them one after the other."
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


def _outcomes(results: dict[str, Any]) -> dict[str, Any]:
    refused = [str(result) for result in results.values() if isinstance(result, CastmatesError)]
    if refused:
        raise CastmatesError(" ".join(dict.fromkeys(refused)))
    return results
