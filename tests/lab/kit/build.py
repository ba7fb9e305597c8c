"""Builds the lab once, into a cache: `python -m tests.lab.kit.build`, which is `make lab`.

A product's folder carries a digest of the files that decide what it is, so that an edited recipe builds anew and an
edited test does not.
"""

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.lab.kit import debian, kernels, programs, qemu
from tests.lab.kit.alone import alone
from tests.lab.kit.common import NoLab, Say

PROJECT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
COMMON = (HERE / "common.py", HERE / "debian.py")


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be booted."""

    version: str
    image: Path
    initrd: Path


@dataclass(frozen=True)
class Lab:
    """What is built."""

    qemu: Path
    firmware: Path
    kernels: dict[str, Kernel]  # by series
    programs: Path  # what guests may install, as it lies below /


def cache() -> Path:
    """Where the lab is built: $CASTMATES_LAB_CACHE, or .cache/lab in the project."""
    return Path(os.environ.get("CASTMATES_LAB_CACHE") or PROJECT / ".cache/lab").absolute()


def built() -> Lab | None:
    """Return the lab if it is built."""
    products = _products()
    if not all(folder.is_dir() for folder in products.values()):
        return None
    emulator, installed = products.pop("qemu"), products.pop("programs")
    return Lab(
        emulator / "qemu-rdt",
        emulator / "firmware",
        {
            series: Kernel((folder / "version").read_text(), folder / "vmlinuz", folder / "initrd.gz")
            for series, folder in products.items()
        },
        installed,
    )


def build(say: Say) -> Lab:
    """Return the lab, built first if need be; NoLab explains why that cannot be."""
    if lab := built():
        return lab
    if reason := debian.unfit():
        raise NoLab(reason)
    with alone(cache(), say):
        _build_missing(say)
    lab = built()
    assert lab is not None
    return lab


def _build_missing(say: Say) -> None:
    missing = {name: folder for name, folder in _products().items() if not folder.is_dir()}
    if not missing:  # somebody else has just built it
        return
    say(f"Building the lab in {cache()} (once; about 5 minutes on 2 cores, 400 MB to fetch)")
    packages = debian.Debian(cache() / "debian")
    packages.update()
    for name, folder in missing.items():
        if name == "qemu":
            qemu.Build(packages, folder.with_name(f"{folder.name}.work"), say).into(folder)
        elif name == "programs":
            programs.build(packages, folder, say)
        else:
            kernels.build(name, packages, folder, say)
    packages.forget()
    for scraps in cache().glob("*.work"):  # of a recipe that was edited before its build came to an end
        shutil.rmtree(scraps)


def _products() -> dict[str, Path]:
    """Where each product lies, or will lie."""
    places = {"qemu": cache() / f"qemu-{_digest(HERE / 'qemu.py', qemu.LOCK, *sorted(qemu.PATCH.parent.iterdir()))}"}
    places["programs"] = cache() / f"programs-{_digest(HERE / 'programs.py')}"
    for series in kernels.PREFERRED:
        places[series] = cache() / f"linux-{series}-{_digest(HERE / 'kernels.py', kernels.INIT)}"
    return places


def _digest(*files: Path) -> str:
    content = hashlib.sha256()
    for file in (*COMMON, *files):
        content.update(hashlib.sha256(file.read_bytes()).digest())
    return content.hexdigest()[:12]


if __name__ == "__main__":
    try:
        done = build(lambda word: print(word, flush=True))
    except NoLab as reason:
        sys.exit(f"The lab cannot be built here: {reason}.")
    print(f"The lab is built: {done.qemu}, Linux {', '.join(one.version for one in done.kernels.values())}")
