"""Builds a Python environment from a lock with hashes, by way of uv."""

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from castmates.errors import CastmatesError

ROUGH_PACKAGE_SIZES = {
    "tensorflow-cpu": "about 2 GB",
    "nvidia-cudnn-cu12": "several GB",
    "ziglang": "about 400 MB",
    "torch": "about 900 MB",
    "jaxlib": "about 650 MB",
    "llama-cpp-python": "about 140 MB",
}
# How what has no wheels is built. llama.cpp would ask which processor compiles it, and other nodes may share the cache:
# AVX2 on x86-64 for all; images are not read here.
BUILT_WITH = {
    "llama-cpp-python": ("cmake.define.GGML_NATIVE=OFF", "cmake.define.LLAVA_BUILD=OFF"),
}
PAGE_OF_WHEELS = re.compile(r"^--find-links https://.*\n", re.MULTILINE)
UVS_FOLDER = "/"  # uv takes settings, such as its cache, from its folder and those above, which others may write
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def build(name: str, lock: Path, wanted: str, place: Path, held: int) -> dict[str, object]:
    """Make the environment in this place and return what is in it; uv holds the builder's lock file too."""
    packages = locked_versions(lock)
    python = find_python(wanted, f"{lock.parent / name}.yaml")
    size = next((size for package, size in ROUGH_PACKAGE_SIZES.items() if package in packages), "tens of MB")
    print(
        f"Building the environment '{name}' in {place}: {len(packages)} packages, {size} on disk, downloaded unless "
        "uv has them in its cache",
        file=sys.stderr,
    )
    lock, place = lock.absolute(), place.absolute()
    log = place.with_name(f".{place.name}.log")
    log.unlink(missing_ok=True)
    _uv(["venv", "--no-project", "--python", python, str(place)], name, place, log, held)
    # `sync` installs exactly the lock: what a package declares beyond it was left out on purpose.
    lock_options = ["--require-hashes", "--compile-bytecode", *build_settings(lock)]
    inside = str(place / "bin" / "python")
    sources = _sources(lock, packages, inside, place)
    _uv(["pip", "sync", *lock_options, "--python", inside, *sources], name, place, log, held)
    installed = _installed(inside)
    top = _top_packages(installed, lock.with_suffix(".in"), packages)
    return {"python": _version(inside), "packages": top, "installed": len(installed)}


def find_python(wanted: str, said_in: str) -> str:
    """Find an interpreter in this range that really runs: this one first, then what uv sees."""
    from packaging.specifiers import SpecifierSet

    accepted = SpecifierSet(wanted)
    found = _uv_answer(["python", "find", "--no-project", "--no-python-downloads", wanted]).strip()
    for candidate in filter(None, (sys.executable, found)):
        version = _version(candidate)
        if version and version in accepted:
            return candidate
    raise CastmatesError(
        f"{said_in} needs Python {wanted} (its packages have no wheels for others) and this machine has only "
        f"{', '.join(_pythons_here())}: install one, for example with uv python install '{wanted}'."
    )


def locked_versions(lock: Path) -> dict[str, str]:
    """Read package -> version from a lock, without its markers and hashes."""
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(pinned)


def build_settings(lock: Path) -> list[str]:
    """The options of uv by which it builds what the lock has of packages without wheels."""
    return [
        f"--config-settings-package={package}:{setting}"
        for package in locked_versions(lock)
        for setting in BUILT_WITH.get(package, ())
    ]


def _sources(lock: Path, packages: dict[str, str], inside: str, place: Path) -> list[str]:
    """What uv installs from: the lock, or a copy of it without its page of wheels where a folder has them all.

    A version such as 2.13.0+cpu is not on PyPI, so the lock names a page that has it. A machine that cannot reach that
    page may have the wheels in a folder that pip knows; the hashes hold for both.
    """
    text = lock.read_text(encoding="utf-8")
    folders = [Path(one).absolute() for one in os.environ.get("PIP_FIND_LINKS", "").split() if Path(one).is_dir()]
    python = "cp" + "".join(_version(inside).split(".")[:2])
    elsewhere = [f"{name}-{version}-{python}-*.whl" for name, version in packages.items() if "+" in version]
    if not PAGE_OF_WHEELS.search(text) or not all(
        any(any(folder.glob(wheel)) for folder in folders) for wheel in elsewhere
    ):
        return [str(lock)]
    copy = place / lock.name
    copy.write_text(PAGE_OF_WHEELS.sub("", text), encoding="utf-8")
    return [*(word for folder in folders for word in ("--find-links", str(folder))), str(copy)]


def _installed(inside: str) -> dict[str, str]:
    """Ask the new interpreter for all its packages with their versions."""
    code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    done = subprocess.run(
        [inside, "-I", "-c", code], env=_uv_environment(), capture_output=True, text=True, check=False
    )
    installed: dict[str, str] = json.loads(done.stdout or "{}")
    return installed


def _top_packages(installed: dict[str, str], asked: Path, packages: dict[str, str]) -> dict[str, str]:
    """The versions of what the .in file names (of everything where there is none)."""
    names = list(packages)
    if asked.is_file():
        names = re.findall(r"^[A-Za-z0-9._-]+", asked.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {name.replace("_", "-"): version for name, version in installed.items()}  # builders spell them differently
    return {name: found[name] for name in names if name in found}


def _pythons_here() -> list[str]:
    listed = _uv_answer(["python", "list", "--only-installed", "--no-python-downloads", "--output-format", "json"])
    versions = {f"{sys.version_info.major}.{sys.version_info.minor}"}
    for one in json.loads(listed or "[]"):
        if one["implementation"] == "cpython":
            versions.add(f"{one['version_parts']['major']}.{one['version_parts']['minor']}")
    return sorted(versions, key=lambda version: tuple(map(int, version.split("."))))


def _version(python: str) -> str:
    """Ask an interpreter for its version by running it; "" if it does not run."""
    command = [python, "-I", "-c", "import platform; print(platform.python_version())"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _uv_answer(arguments: list[str]) -> str:
    return subprocess.run(
        [_uv_program(), *arguments], cwd=UVS_FOLDER, env=_uv_environment(), capture_output=True, text=True, check=False
    ).stdout


def _uv(arguments: list[str], name: str, place: Path, log: Path, held: int) -> None:
    """Run uv: its own progress on a terminal, else a line now and then; a failure becomes one sentence."""
    on_terminal = sys.stderr.isatty()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [_uv_program(), *arguments],
            cwd=UVS_FOLDER,
            env=_uv_environment(),
            stdin=subprocess.DEVNULL,
            stdout=None if on_terminal else output,
            stderr=None if on_terminal else output,
            pass_fds=(held,),  # were this process killed, uv would go on: the next builder has to wait for it
        )
        wait(process, f"'{name}'", silent=on_terminal)
    if process.returncode != 0:
        last = last_lines(log, 8)
        words = "\n".join(last) if last else "uv's own words are above."
        raise CastmatesError(
            f"uv could not build the environment '{name}' in {place} (status {process.returncode}); look at its last "
            f"lines, and at the network if they mention it:\n{words}"
        )


def _uv_program() -> str:
    import uv

    return uv.find_uv_bin()


def _uv_environment() -> dict[str, str]:
    """What uv is started with: nothing that points it at the framework's own packages, and pip's trust.

    uv brings its own certificates; a cohort's proxy is known to the system's, which pip already trusted here.
    """
    kept = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    trust = {"UV_SYSTEM_CERTS": "1"} if SYSTEM_CERTIFICATES.is_file() else {}
    return trust | kept


# What all builders share: one at a time in a place, a sign of life for who waits, and how much a place holds.

SIGN_OF_LIFE_SECONDS = 10.0


@contextmanager
def alone(file: Path) -> Iterator[int]:
    """Hold this lock file, so that of two builders one waits for the other, and give its descriptor."""
    with file.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another process is building in {file.parent}: waiting for it", file=sys.stderr)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield held.fileno()


def draft_of(place: Path) -> Path:
    """A folder beside a place that only this node builds in: locks may hold for each node by itself."""
    return place.with_name(f".{place.name}@{platform.node()}")


def put(draft: Path, place: Path, ready: Path) -> None:
    """Make a draft the place, unless another node was faster: `ready` is a file of the place when it is whole."""
    try:
        draft.rename(place)
    except OSError:  # it has files
        if not ready.is_file():
            shutil.rmtree(place, ignore_errors=True)
            draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def wait(process: "subprocess.Popen[bytes]", what: str, *, silent: bool = False) -> None:
    """Wait for a process and report now and then that it still runs; it does not outlive us."""
    begun = time.monotonic()
    try:
        while True:
            try:
                process.wait(timeout=SIGN_OF_LIFE_SECONDS)
                return
            except subprocess.TimeoutExpired:
                if not silent:
                    print(f"Still building {what} after {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def last_lines(log: Path, count: int) -> list[str]:
    """The last lines of a builder's log."""
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]


def bytes_on_disk(place: Path) -> int:
    """What a folder takes of the disk."""
    return sum(512 * file.lstat().st_blocks for file in place.rglob("*"))
