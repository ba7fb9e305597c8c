"""Settings of the TensorFlow runtime that must be made before, and right after, its import."""

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def prepare(threads: int, *, onednn: bool, device: str) -> None:
    """Set what TensorFlow reads from the environment when it is imported."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # the Model Garden is written for Keras 2
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1" if onednn else "0"
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[pool] = str(threads)
    warnings.filterwarnings("ignore")


def tensorflow(threads: int, inter_threads: int) -> Any:
    """Import TensorFlow, give its two pools this many threads and keep it quiet."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(inter_threads)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    return tf


def where_to_run(error: ModuleNotFoundError) -> str:
    """Print in one sentence what to do where TensorFlow or the Model Garden is missing."""
    return (
        f"This Python has no module '{error.name}': run the job in the tfmodels environment "
        "(castmates internals build-environment tfmodels)."
    )


# Spares a job the imports that it does not need; standard library only.
#
# The Model Garden's packages import all their tasks when one of them is imported, and with these plotting, scoring and
# data-set libraries: half of what is imported after TensorFlow. Nothing is left out for good: what is put off is
# imported when it is used.

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


class _Later(ModuleType):
    """Stands for a module until one of its names is wanted.

    The standard library's LazyLoader imports at a look at `__file__` already, which `inspect` takes of every module.
    """

    def __getattr__(self, name: str) -> Any:
        if (name.startswith("__") and name != "__path__") or "_made" not in vars(self):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            Finder.wanted.add(self.__name__)
        return getattr(import_module(self.__name__), name)


class _Stand(Loader):
    """Makes what stands for a module."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make it empty."""
        return _Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A module below it needs the real one."""
        vars(module).pop("__path__", None)
        vars(module)["_made"] = True


class _Nothing(Loader):
    """Runs nothing: the package is there for the modules below it."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Leave it empty."""


class Finder(MetaPathFinder):
    """Finds what is put off, and leaves everything else to Python's own finders."""

    wanted: set[str] = set()  # noqa: RUF012  (what was put off and then used; one process, one set)

    def __init__(self, later: Sequence[str], plain: Sequence[str]) -> None:
        self._loaders: dict[str, Loader] = dict.fromkeys(later, _Stand()) | dict.fromkeys(plain, _Nothing())

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Give the module's own specification with another loader."""
        loader = None if fullname in self.wanted else self._loaders.get(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if loader else None
        if spec is not None:
            spec.loader = loader
        return spec


def spare(*, one_job: bool) -> None:
    """Import from now on only what is used; `one_job`: the packages are not asked for all that they have."""
    sys.meta_path.insert(0, Finder(LATER, PLAIN if one_job else ()))
