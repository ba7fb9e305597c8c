"""Castmates: co-location interference studies.

`castmates.load("results/first-look")` opens the results of a study as pandas tables (docs/api.md).
"""

from typing import TYPE_CHECKING

from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.report.results import Results, load

__version__ = "0.1.0"
__all__ = ["CastmatesError", "Results", "__version__", "load"]


def __getattr__(name: str) -> object:
    """Import what reads results when it is asked for: it needs pandas, and most of Castmates does not."""
    if name in ("Results", "load"):
        from importlib import import_module

        return getattr(import_module("castmates.report.results"), name)
    raise AttributeError(f"module 'castmates' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
