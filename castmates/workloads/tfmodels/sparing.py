"""Spares a job the imports that it does not need; standard library only.

The Model Garden's packages import all their tasks when one of them is imported, and with these plotting, scoring and
data-set libraries: half of a job's start-up. Nothing is left out for good: what is put off is imported when it is used.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

# Imported at the first use of one of their names.
LATER = (
    "cv2",
    "matplotlib.pyplot",
    "sacrebleu",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.stats",
    "seqeval.metrics",
    "sklearn.metrics",
    "tensorflow_datasets",
    "tensorflow_hub",
)
# Packages whose own file does nothing but import all their modules: each module is imported where it is named.
PLAIN = ("official.core", "official.nlp.tasks", "official.vision", "official.vision.configs", "official.vision.tasks")


class _Nothing(Loader):
    """Runs nothing: the package is there for the modules below it."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Leave it empty."""


class _Finder(MetaPathFinder):
    def __init__(self, plain: Sequence[str]) -> None:
        self._plain = frozenset(plain)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Put off what is put off; Python's own finders find everything else."""
        if fullname not in self._plain and fullname not in LATER:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        spec.loader = _Nothing() if fullname in self._plain else LazyLoader(spec.loader)
        return spec


def spare(*, one_job: bool) -> None:
    """Import from now on only what is used; `one_job`: nobody asks the packages for all that they have."""
    sys.meta_path.insert(0, _Finder(PLAIN if one_job else ()))
