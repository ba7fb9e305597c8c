"""The data sets that workloads read: made here by programs of ours, once per content, from a fixed seed.

A generator is a module that is run as `python -P -m MODULE --into FOLDER ARGUMENTS...`. It writes the same bytes on
every machine where the format allows that, downloads nothing, and names the files beside it that it reads, if any, in
the variable `DATA_FILES`.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from castmates.errors import CastmatesError
from castmates.files import make_folder
from castmates.linux.probe_points import NoPlace, device_type, find, refusal, refusal_of_instructions
from castmates.workloads import environments, identity, python_environment, sources


@dataclass(frozen=True)
class Recipe:
    """What makes a data set."""

    module: str
    arguments: tuple[str, ...] = ()
    environment: str | None = None  # whose interpreter runs the module; the framework's own if None


def _words(options: dict[str, int]) -> list[str]:
    return [word for option, value in options.items() for word in (f"--{option}", str(value))]


def _records(kind: str, **options: int) -> Recipe:
    return Recipe("castmates.workloads.tfmodels.records", (kind, *_words(options)), "tfmodels")


def _llama(**options: int) -> Recipe:
    return Recipe("castmates.workloads.llamajobs.weights", tuple(_words(options)), "llama")


RECIPES: dict[str, Recipe] = {
    "csource": Recipe("castmates.workloads.data.csource"),
    "formula": Recipe("castmates.workloads.data.formula"),
    "hpcc": Recipe("castmates.workloads.data.hpcc"),
    "image": Recipe("castmates.workloads.data.image"),
    "llama-small": _llama(layers=12, width=768, vocabulary=8192),
    "llama-tiny": _llama(layers=2, width=256, vocabulary=2048),
    "perl": Recipe("castmates.workloads.data.perl"),
    "povray": Recipe("castmates.workloads.data.povray"),
    "text": Recipe("castmates.workloads.data.text"),
    "tfmodels-clicks": _records("clicks", rows=200_000),
    "tfmodels-clicks-full": _records("clicks", rows=1_000_000, count=65_536, criteo=1),
    "tfmodels-clicks-tiny": _records("clicks", rows=5_000),
    "tfmodels-images": _records("images", side=128),
    "tfmodels-images-full": _records("images", side=400),
    "tfmodels-scenes": _records("scenes", side=160),
    "tfmodels-scenes-full": _records("scenes", side=500),
    "tfmodels-sentences": _records("sentences", vocabulary=8_000, words=14),
    "tfmodels-sentences-full": _records("sentences", vocabulary=32_000, words=28, count=16_384),
    "tfmodels-tokens": _records("tokens", sequence=64, masked=8, vocabulary=8_000),
    "tfmodels-tokens-full": _records("tokens", sequence=128, masked=20, vocabulary=30_522),
    "video": Recipe("castmates.workloads.data.video"),
    "xml": Recipe("castmates.workloads.data.xml"),
}


def known() -> list[str]:
    """Name every data set that a workload may ask for."""
    return sorted(RECIPES)


def key(name: str, envs_dir: Path) -> str:
    """Digest what a data set is made by; another key means another data set."""
    recipe = _recipe(name)
    parts = [recipe.module, *recipe.arguments, sources.digest_of([recipe.module])]
    if recipe.environment is not None:
        parts.append(environments.key(recipe.environment, envs_dir))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def place_of(name: str, content_key: str, cache: Path) -> Path:
    """Return where the data set of this content lies, made or not."""
    return cache / "inputs" / f"{name}-{content_key}"


def location(name: str, envs_dir: Path, cache: Path) -> Path:
    """Return where a data set lies as it is wanted now."""
    return place_of(name, key(name, envs_dir), cache.resolve())


def ready_file(place: Path) -> Path:
    """Name the file that is written last, when the data set is complete; a pattern such as `*` does not match it."""
    return place / ".ready.json"


def build(name: str, envs_dir: Path, cache: Path) -> Path:
    """Make a data set unless it is there, and return where it lies."""
    recipe, place = _recipe(name), location(name, envs_dir, cache)
    if ready_file(place).is_file():
        return place
    python, variables = _interpreter(recipe, envs_dir, cache)
    make_folder(place.parent)
    with python_environment.alone(place.with_name(f".{place.name}.lock")) as held:
        if ready_file(place).is_file():  # another builder was faster
            return place
        print(f"Making the data set '{name}' in {place}", file=sys.stderr, flush=True)
        partial = place.with_name(f".{place.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)  # what a killed builder left
        make_folder(partial)
        begun = time.monotonic()
        command = [python, "-P", "-m", recipe.module, "--into", str(partial), *recipe.arguments]
        _run(name, command, variables, partial, held)
        seconds = round(time.monotonic() - begun, 1)
        facts = {"name": name, "key": key(name, envs_dir), "seconds": seconds} | _contents(name, partial)
        ready_file(partial).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
    print(f"Made '{name}': {facts['bytes']} bytes in {facts['files']} files, in {seconds} s", file=sys.stderr)
    return place


def _recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise CastmatesError(f"there is no data set '{name}'; there are: {', '.join(known()) or 'none'}.")
    return RECIPES[name]


def _interpreter(recipe: Recipe, envs_dir: Path, cache: Path) -> tuple[str, dict[str, str]]:
    """The interpreter that runs the generator, and the variables with which it finds this package alone."""
    if recipe.environment is None:
        return sys.executable, {"PYTHONPATH": str(sources.ROOT)}
    place = environments.build(recipe.environment, envs_dir, cache)
    found = environments.environment_of(place)
    path = os.pathsep.join([found.pop("PATH"), os.environ.get("PATH", os.defpath)])
    return str(place / "bin" / "python"), {"PATH": path, **found}


def _run(name: str, command: list[str], variables: dict[str, str], partial: Path, held: int) -> None:
    log = partial.with_name(f".{name}.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=os.environ | {"PYTHONHASHSEED": "0"} | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(held,),  # were this process killed, the generator would go on: the next builder has to wait
        )
        python_environment.wait(process, f"'{name}'")
    if process.returncode != 0:
        words = next(
            (line for line in reversed(python_environment.last_lines(log, 20)) if line.strip()), "it wrote nothing"
        )
        raise CastmatesError(
            f"the data set '{name}' could not be made: {command[3]} ended with status {process.returncode} and last "
            f'wrote "{words.strip()[:300]}" (all of it: {log}).'
        )


def _contents(name: str, folder: Path) -> dict[str, object]:
    """How much a data set is, and a digest of its files with their names."""
    digest, size, count = hashlib.sha256(), 0, 0
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256").hexdigest()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{content}\n".encode())
        size, count = size + file.stat().st_size, count + 1
    if not size:
        raise CastmatesError(f"the data set '{name}' could not be made: its generator ended well and wrote nothing.")
    return {"bytes": size, "files": count, "digest": digest.hexdigest()}


# What a workload lacks on this machine, and how to get it.


class Workload(Protocol):
    """What has to be known of a workload of the catalogue."""

    @property
    def words(self) -> Sequence[str]:
        """Its command."""

    @property
    def environment(self) -> str | None:
        """What it runs in."""

    @property
    def inputs(self) -> str | None:
        """Its data set."""

    @property
    def package(self) -> str | None:
        """Debian's, which has its program."""

    @property
    def way(self) -> str:
        """How its progress is read."""

    @property
    def calls(self) -> str:
        """What is called, where that is its progress."""


@dataclass(frozen=True)
class Lack:
    """Something without which a workload cannot be started here."""

    what: str
    remedy: str
    environment: str | None = None  # that can be built


def lack_of(workload: Workload, envs_dir: Path, cache: Path) -> Lack | None:
    """Return the first thing that is not there; None where all is, or comes by itself as the compiled kernels do."""
    path = os.environ.get("PATH", os.defpath)
    if not workload.words:
        return Lack("it has a model and no command", "give it a 'command'")
    if workload.environment not in (None, environments.NATIVE):
        place = environments.location(workload.environment, envs_dir, cache)
        if not environments.ready_file(place).is_file():
            return _unbuilt(workload.environment)
        path = os.pathsep.join([str(place / "bin"), path])
    if (maker := _maker_of_inputs(workload, envs_dir, cache)) is not None:
        return _unbuilt(maker)
    if workload.environment == environments.NATIVE and identity.is_kernel(workload.words[0]):
        return None
    if lack := identity.lack(workload.words, workload.package, path):
        remedy = f"apt-get install {workload.package}" if workload.package else f"install {workload.words[0]}"
        return Lack(lack, remedy)
    return uncounted(workload.way, workload.calls, path)


def uncounted(way: str, calls: str, path: str) -> Lack | None:
    """Return why instructions or these calls cannot be counted here as progress; None where they can."""
    another = "name another 'progress' (castmates help add-a-workload)"
    if way == "instructions" and (why := refusal_of_instructions()):
        return Lack(why, another)
    if way != "calls":
        return None
    try:
        why, remedy = refusal(find(calls, path)), "run as root" if device_type() is not None else another
    except NoPlace as problem:
        why, remedy = str(problem).removesuffix("."), "correct what is to be counted"
    return Lack(why, remedy) if why else None


def _maker_of_inputs(workload: Workload, envs_dir: Path, cache: Path) -> str | None:
    """Return the environment that must be built before the workload's data set; None where none is needed."""
    if workload.inputs is None or workload.inputs not in RECIPES:
        return None
    name = RECIPES[workload.inputs].environment
    if name is None or ready_file(location(workload.inputs, envs_dir, cache)).is_file():
        return None
    return None if environments.ready_file(environments.location(name, envs_dir, cache)).is_file() else name


def _unbuilt(name: str) -> Lack:
    return Lack(f"the environment '{name}' is not built", f"castmates internals build-environment {name}", name)
