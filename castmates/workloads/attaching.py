"""What a program is started with so that its steps are followed from outside (castmates/workloads/attached)."""

import os
from collections.abc import Mapping
from pathlib import Path

from castmates.workloads import environments
from castmates.workloads.attached.functions import VARIABLE

MODULE = "castmates.workloads.attached.follow"
START = Path("workloads") / "attached" / "start"  # in the package; its folder comes first on PYTHONPATH


def variables(environment: Mapping[str, str], step_function: str, cache: Path) -> dict[str, str]:
    """The variables that are added to an environment, or changed in it."""
    ours = environments.import_folder(cache.resolve())
    start = ours / environments.PACKAGE.name / START
    path = os.pathsep.join(filter(None, [str(start), str(ours), environment.get("PYTHONPATH")]))
    return {"PYTHONPATH": path} | ({VARIABLE: step_function} if step_function else {})
