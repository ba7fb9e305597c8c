"""What workloads run in: the compiled kernels, and Python environments from locks; each built once per content."""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.workloads import python_environment, sources
from castmates.workloads.attached.keras import VARIABLE as STEP
from castmates.workloads.attached.pulse import FRAMEWORK
from castmates.workloads.native import build as native_build

NATIVE = "native"
COMPILER = "compiler"
LOOP = "loop"
# Who keeps programs running that end, and who reports for those that do not report themselves.
KEEPERS = {
    "runs": (LOOP,),
    "heartbeat": (LOOP,),
    "output": (LOOP, "lines"),
    "barriers": (LOOP, *native_build.LIBRARIES),
    "calls": (LOOP, "count"),
    "instructions": (LOOP, "count"),
}
PACKAGE = Path(__file__).resolve().parents[1]
FRAMEWORKS_OWN = ("castmates", "dev", "docs", "kubernetes", "slurm", COMPILER)  # locks that no workload names


def known(envs_dir: Path) -> list[str]:
    """Name every environment that a workload may ask for."""
    locks = sorted(file.stem for file in envs_dir.glob("*.lock"))
    return [NATIVE, *(name for name in locks if name not in FRAMEWORKS_OWN)]


def key(name: str, envs_dir: Path) -> str:
    """Digest what an environment is made from; another key means another environment."""
    if name == NATIVE:
        content = native_build.fingerprint().encode()
    else:
        lock = _lock_file(name, envs_dir)
        words = [python_range(name, envs_dir), platform.machine(), *python_environment.build_settings(lock)]
        content = b"\0".join([lock.read_bytes(), *map(str.encode, words)])
    return hashlib.sha256(content).hexdigest()[:12]


def keepers(progress: str, name: str | None, command: Sequence[str], goes_on: bool) -> tuple[str, ...]:
    """Return who starts a command, the first one outermost, and what is preloaded; nobody where it goes on by itself.

    That holds for our own programs, and for those whose kind of work does (`goes_on`).
    """
    is_ours = name == NATIVE and command[0] in native_build.OF_WORKLOADS
    is_ours |= any(word.startswith(f"{PACKAGE.name}.") for word in command)
    return () if progress == "heartbeat" and (goes_on or is_ours) else KEEPERS[progress]


def content(
    name: str | None,
    content_key: str | None,
    command: Sequence[str],
    keepers: Sequence[str],
    inputs_key: str | None = None,
) -> str:
    """Digest what runs when this command is started: its environment, its data set, and our own files that it uses.

    What a command of the user's reads besides (its own script, its data) is not seen.
    """
    parts = [native_build.content(part) for part in keepers]
    if name == NATIVE and command[0] in native_build.OF_WORKLOADS:
        parts.append(native_build.content(command[0]))
    elif content_key is not None and name != NATIVE:
        parts.append(content_key)
    parts.append(sources.digest_of(command))
    if inputs_key is not None:
        parts.append(inputs_key)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def place_of(name: str, content_key: str, cache: Path) -> Path:
    """Return where the environment of this content lies, built or not."""
    return cache / "environments" / f"{name}-{content_key}"


def location(name: str, envs_dir: Path, cache: Path) -> Path:
    """Return where an environment lies as it is wanted now."""
    return place_of(name, key(name, envs_dir), cache.resolve())


def ready_file(place: Path) -> Path:
    """Name the file that is written last, when the environment is complete."""
    return place / "ready.json"


def python_range(name: str, envs_dir: Path) -> str:
    """Read from NAME.yaml for which Pythons the lock was made, such as '>=3.11,<3.14'."""
    import yaml  # every launch loads this module, and none comes here

    file = envs_dir / f"{name}.yaml"
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        lines = [line for line in content["dependencies"] if isinstance(line, str)]
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        raise CastmatesError(
            f"{file} cannot be read as a conda environment file: it must have 'dependencies' with a line such as "
            "'python >=3.11,<3.14' beside the lock."
        ) from None
    found = (re.fullmatch(r"python\s*([<>=!~][<>=!~.,\s\d]*)", line) for line in lines)
    ranges = [match[1].replace(" ", "") for match in found if match]
    if len(ranges) != 1:
        raise CastmatesError(
            f"{file} must state once for which Pythons {name}.lock was made, in a line such as 'python >=3.11,<3.14'."
        )
    return ranges[0]


def build(name: str, envs_dir: Path, cache: Path) -> Path:
    """Build an environment unless it is there, and return where it lies."""
    place = location(name, envs_dir, cache)
    ready = ready_file(place)
    if ready.is_file():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with python_environment.alone(place.with_name(f".{place.name}.lock")) as held:
        if ready.is_file():  # another builder was faster
            return place
        # Several nodes may build kernels at once; a Python environment has its path in it, and is built there.
        draft = python_environment.draft_of(place) if name == NATIVE else place
        shutil.rmtree(draft, ignore_errors=True)  # what a killed builder left
        begun = time.monotonic()
        facts = _build_native(draft, envs_dir, cache) if name == NATIVE else _build_python(name, envs_dir, draft, held)
        facts = {"name": name, "key": key(name, envs_dir), "seconds": round(time.monotonic() - begun, 1)} | facts
        facts["bytes"] = python_environment.bytes_on_disk(draft)
        replace_text(ready_file(draft), json.dumps(facts, indent=1) + "\n")
        if name == NATIVE:
            python_environment.put(draft, place, ready)
    return place


def environment_of(place: Path) -> dict[str, str]:
    """Return what to set for a workload that runs in a built environment; PATH is what goes before the usual one."""
    variables = {"PATH": str(place / "bin")}
    if (place / "pyvenv.cfg").is_file():
        variables |= {"VIRTUAL_ENV": str(place), "PYTHONPATH": str(import_folder(place.parent.parent))}
    return variables


def _lock_file(name: str, envs_dir: Path) -> Path:
    file = envs_dir / f"{name}.lock"
    if not file.is_file():
        names = ", ".join(known(envs_dir))
        raise CastmatesError(f"There is no environment '{name}' ({file} is missing); there are: {names}.")
    return file


def import_folder(cache: Path) -> Path:
    """Make a folder that holds nothing but a link to this package.

    Beside the package there may be the framework's own site-packages, which would hide the environment's.
    """
    folder = cache / "import" / hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (folder / PACKAGE.name).symlink_to(PACKAGE)
    return folder


def _build_python(name: str, envs_dir: Path, place: Path, held: int) -> dict[str, object]:
    return python_environment.build(name, _lock_file(name, envs_dir), python_range(name, envs_dir), place, held)


def _build_native(place: Path, envs_dir: Path, cache: Path) -> dict[str, object]:
    compiler = native_build.find_compiler() or _fetched_compiler(envs_dir, cache)
    native_build.build(place / "bin", compiler)
    said = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False).stdout
    version = next(iter(said.splitlines()), "")
    return {"compiler": compiler, "compiler_version": version, "sources": native_build.sources()}


def _fetched_compiler(envs_dir: Path, cache: Path) -> list[str]:
    print("No C compiler works here: fetching one as a Python package", file=sys.stderr)
    try:
        return wheel_compiler(envs_dir, cache)
    except CastmatesError as error:
        raise CastmatesError(
            "The native kernels need a C compiler, none works here and none could be fetched as a package: install "
            f"one, for example with apt-get install gcc, or set CC ({' '.join(str(error).split())})"
        ) from error


def wheel_compiler(envs_dir: Path, cache: Path) -> list[str]:
    """Fetch the compiler of our own lock unless it is there; give its command."""
    return [str(build(COMPILER, envs_dir, cache) / "bin" / "python"), "-P", "-m", "ziglang", "cc"]


# What a program is started with so that its steps are followed from outside (castmates/workloads/attached).

MODULE = "castmates.workloads.attached.follow"
START = Path("workloads") / "attached" / "start"  # in the package; its folder comes first on PYTHONPATH


def variables(environment: Mapping[str, str], step_function: str, cache: Path, framework: str = "") -> dict[str, str]:
    """The variables that are added to an environment, or changed in it."""
    ours = import_folder(cache.resolve())
    start = ours / PACKAGE.name / START
    path = os.pathsep.join(filter(None, [str(start), str(ours), environment.get("PYTHONPATH")]))
    asked = {STEP: step_function, FRAMEWORK: framework}
    return {"PYTHONPATH": path} | {name: value for name, value in asked.items() if value}
