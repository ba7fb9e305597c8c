"""What decides what is measured again: the files that run for each module, workloads' digests, defaults of records."""

import os
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from castmates import project
from castmates.study.spec import Launch
from castmates.workloads import environments, inputs, sources
from castmates.workloads.native import build as native
from tests.golden.report import GOLDEN

DIGESTS = GOLDEN / "digests.json"
ROOT = Path(__file__).parents[2]
MODULES = (
    "castmates.workloads.suites.run",
    "castmates.workloads.stressng",
    "castmates.workloads.tfmodels",
    "castmates.workloads.tfmodels.attach",
    "castmates.workloads.tfmodels.records",
    "castmates.workloads.torchjobs",
    "castmates.workloads.jaxjobs",
    *(recipe.module for name, recipe in sorted(inputs.RECIPES.items()) if not name.startswith("tfmodels")),
)


def digests() -> dict:
    """As they are now; what an environment or a data set is made of counts as unchanged."""
    with chdir(ROOT):
        workloads = project.read_catalogue(Path("config/workloads"))
    return {
        "modules": {module: _module(module) for module in MODULES},
        "kernels": {kernel: native.content(kernel) for kernel in sorted((*native.KERNELS, *native.CONTROLS))},
        "workloads": {
            name: environments.content(
                workload.environment,
                workload.environment,
                workload.words,
                environments.keepers(workload.way, workload.environment, workload.words, workload.goes_on),
                workload.inputs,
            )
            for name, workload in sorted(workloads.items())
        },
        "defaults": dict(sorted(_defaults())),
    }


def forget() -> None:
    """Have files read anew that were edited: within a process they are taken to stay."""
    kept = (sources._source, sources._files_of, sources._names_in, sources._digest_of_file, sources._own_digest)
    for cached in kept:
        cached.cache_clear()


def _defaults() -> Iterator[tuple[str, object]]:
    """What stands in no fingerprint: the default of every field of a launch, and of the records in it."""
    schema = Launch.model_json_schema()
    for record, about in {"Launch": schema, **schema["$defs"]}.items():
        for field, own in about.get("properties", {}).items():
            if not isinstance(own.get("default", {}), dict):
                yield f"{record}.{field}", own["default"]


def _module(module: str) -> dict:
    files = sources.files_run_by([module])
    return {
        "files": sorted(os.path.relpath(file, sources.ROOT) for file in files),
        "digest": sources.digest_of([module])[:12],
    }
