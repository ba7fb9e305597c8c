"""The packages that the base and each extra of pyproject.toml bring, and one sentence where some are not installed."""

from importlib.util import find_spec
from pathlib import Path

from castmates.english import listed
from castmates.errors import CastmatesError
from castmates.shipped import clone

BASE, SWEEP, TRACE = "", "sweep", "trace"
# By extra, what is imported. Level changes are found where ruptures is there too: it has no wheels for some Pythons.
MODULES = {
    BASE: ("numpy", "pandas", "psutil", "pyarrow", "pydantic", "yaml", "rich", "typer"),
    SWEEP: ("jinja2", "matplotlib", "packaging", "scipy", "snakemake", "uv"),
    TRACE: ("duckdb", "networkx", "perfetto", "google.protobuf"),
}
PACKAGES = {"yaml": "pyyaml", "google.protobuf": "protobuf"}  # that are not named like their module


def refuse_lacking(*extras: str) -> None:
    """End with a sentence where something of the base or of these extras is not installed."""
    if words := lacking_words(*extras):
        raise CastmatesError(f"{words}, and then the same command again.")


def lacking_words(*extras: str) -> str:
    """Which packages of the base and of these extras are not installed, and what installs them; "" where all are."""
    lacking = {extra: [name for name in MODULES[extra] if not _there(name)] for extra in (BASE, *extras)}
    names = [PACKAGES.get(name, name) for missing in lacking.values() for name in missing]
    if not names:
        return ""
    lacked = ",".join(extra for extra in extras if extra and lacking[extra])
    wanted = f"[{lacked}]" if lacked else ""
    source = f"-e '{_short(folder)}{wanted}'" if (folder := clone()) else f"'castmates{wanted}'"
    return f"{listed(names)} {'are' if len(names) > 1 else 'is'} not installed: run `pip install {source}`"


def explained(problem: ModuleNotFoundError) -> CastmatesError:
    """The sentence about a module that was not found; the problem itself is raised where it is none of these."""
    for extra, modules in MODULES.items():
        if any(f"{name}.".startswith(f"{problem.name}.") for name in modules) and (words := lacking_words(extra)):
            return CastmatesError(f"{words}, and then the same command again.")
    raise problem


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def _short(folder: Path) -> Path:
    return Path() if folder == Path.cwd() else folder
