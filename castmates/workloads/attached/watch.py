"""Has something done right after a module was imported, by whomever and whenever that is; standard library only."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

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
