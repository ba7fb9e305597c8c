"""Follows the training of PyTorch: each step of the first optimizer that steps is one, and its data does not end.

`step` is wrapped on each optimizer, as schedulers of PyTorch do, and not on its class: what compiles a model takes the
class's apart. A call that PyTorch compiles is left as it is.
"""

import functools
import gc
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from castmates.workloads.attached.pulse import Pulse, Status, say
from castmates.workloads.jobs.tracing import INPUT, Mark

NAME = "torch"
MODULE = "castmates_module "  # before the path of a module, as in torchjobs/tracing.py; without one: no module
OPTIMIZER = "Optimizer.step#{}.step"  # PyTorch's own mark
OTHERS = (
    30  # steps without one of the first optimizer: its `step` refers to it, so that only a collection lets go of it
)


class Followed:
    """The optimizer whose steps are counted: the first that steps, and when it is gone the next one."""

    def __init__(self, pulse: Pulse, status: Status) -> None:
        self._pulse, self._status = pulse, status
        self._optimizer: Callable[[], object] = lambda: None  # a weak reference
        self._others = 0  # steps of others since its last one
        self._torch: Any = None
        self.mark: Callable[[str], Mark] | None = None  # while steps are traced

    def patch(self, torch: ModuleType) -> None:
        """Follow the optimizers and the data of this PyTorch."""
        self._torch = torch
        self._status.note(torch=str(getattr(torch, "__version__", "")))
        kind = torch.optim.Optimizer
        if not hasattr(torch, "compiler") or not hasattr(torch.compiler, "is_compiling"):
            say(f"steps of PyTorch {torch.__version__} cannot be followed: it takes 2.1 or newer.")
            return
        kind.__init__ = self._wrapping(kind.__init__)
        loader = torch.utils.data.DataLoader
        loader.__iter__ = self._going_on(loader.__iter__)

    def _wrapping(self, init: Callable[..., None]) -> Callable[..., None]:
        followed, compiling = self, self._torch.compiler.is_compiling

        @functools.wraps(init)
        def made(optimizer: Any, *words: Any, **more: Any) -> None:
            init(optimizer, *words, **more)

            @functools.wraps(type(optimizer).step)
            def step(itself: Any, *words: Any, **more: Any) -> Any:
                plain = type(itself).step
                if compiling():
                    return plain(itself, *words, **more)
                return followed.step(plain, itself, *words, **more)

            if "step" not in vars(optimizer):
                optimizer.step = types.MethodType(step, optimizer)

        return made

    def step(self, plain: Callable[..., Any], optimizer: Any, *words: Any, **more: Any) -> Any:
        """Make a step of an optimizer, with its mark while steps are traced, and count it."""
        if self.mark is not None:
            words, more = self._outside(words, more)
        with self.optimizing(optimizer):
            found = plain(optimizer, *words, **more)
        if self._pulse.takes(NAME):
            self._others += 1
            if self._others == OTHERS:
                gc.collect()
            if self._optimizer() is None:
                self._optimizer = weakref.ref(optimizer)
            if self._optimizer() is optimizer:
                self._others = 0
                self._pulse.step(NAME)
        return found

    def _outside(self, words: Any, more: Any) -> tuple[Any, Any]:
        """A closure that the optimizer calls is the model's work, and none of the optimizer's."""
        mark = self.mark

        def model(closure: Callable[[], Any]) -> Callable[[], Any]:
            def outside() -> Any:
                with mark(MODULE) if mark else nullcontext():
                    return closure()

            return outside

        if words and callable(words[0]):
            return (model(words[0]), *words[1:]), more
        return words, {key: model(each) if key == "closure" and callable(each) else each for key, each in more.items()}

    def _going_on(self, plain: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        """Let data begin again after a pass that made steps: a launch needs a training that goes on."""
        followed = self

        @functools.wraps(plain)
        def begun(loader: Any) -> Iterator[Any]:
            batches = plain(loader)
            return _Endless(followed, plain, loader, batches) if followed._pulse.own else batches

        return begun

    @property
    def steps(self) -> int:
        """Steps so far that the program's own loop made: a trainer begins its data again by itself."""
        return self._pulse.steps if self._pulse.own and not self._pulse.has_trainer else 0

    def optimizing(self, optimizer: object) -> Mark:
        """PyTorch's mark of an optimizer's step, where steps are traced."""
        mark = self.mark  # which another thread may end
        return mark(OPTIMIZER.format(type(optimizer).__name__)) if mark else nullcontext()

    def input(self) -> Mark:
        """A mark of a wait for data, where steps are traced."""
        return self.mark(INPUT) if self.mark else nullcontext()


class _Endless:
    """The batches of a loader, which begin again after the last one as long as they are trained with."""

    def __init__(self, followed: Followed, begin: Callable[[Any], Any], loader: Any, batches: Iterator[Any]) -> None:
        self._followed, self._begin, self._loader, self._batches = followed, begin, loader, batches
        self._steps = followed.steps

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except StopIteration:
            if self._followed.steps == self._steps:
                raise
        self._steps = self._followed.steps
        with self._followed.input():
            self._batches = self._begin(self._loader)
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)
