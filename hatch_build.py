"""Puts the clone's folders into the wheel, below the package; castmates/shipped.py finds them there.

An editable installation needs none of it: its package lies in the clone.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("workflow", "config/workloads", "config/studies", "config/schemas", "config/findings")
FILES = ("scripts/*.py", "docs/*.md", "config/README.md", "envs/*")
NOT = ("envs/dev", "envs/docs", "envs/slurm", "envs/kubernetes")  # locks that only a clone installs: half a megabyte


def shipped(root: Path) -> list[str]:
    """What the wheel has of the clone beside the package, by its place in the clone."""
    files = (file for pattern in FILES for file in root.glob(pattern) if f"{file.parent.name}/{file.stem}" not in NOT)
    return [*FOLDERS, *sorted(str(file.relative_to(root)) for file in files)]


class Clone(BuildHookInterface[Any]):
    """What is in the wheel beside the package's own files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folders and files for a wheel."""
        if version != "editable":
            build_data["force_include"] |= {place: f"castmates/_clone/{place}" for place in shipped(Path(self.root))}
