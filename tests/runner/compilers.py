"""The compilers that may build the kernels, and the processors for which they are asked to: none has to be at hand."""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from castmates.files import cache_folder
from castmates.workloads import environments
from castmates.workloads.native import build as native

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = os.environ.get("CASTMATES_COMPILERS") == "required"
FETCHED = "zig"
# Levels of x86-64, a processor that has its own tuning for AVX-512DQ, Arm without and with scalable vectors.
X86 = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "sapphirerapids")
VECTORS = {"x86-64-v2": frozenset[str](), "x86-64-v3": frozenset({"avx", "fma"})}  # all others have AVX-512
ARM = ("armv8-a", "armv8.4-a+sve")
ZIG_CPUS = {"armv8-a": "generic", "armv8.4-a+sve": "neoverse_v1"} | {name: name.replace("-", "_") for name in X86}


@dataclass(frozen=True)
class Target:
    """A processor for which a compiler builds; `native` is the one at hand."""

    compiler: str
    processor: str

    def __str__(self) -> str:
        return f"{self.compiler}-{self.processor}"

    @property
    def arm(self) -> bool:
        return platform.machine() == "aarch64" if self.processor == "native" else self.processor in ARM

    @property
    def features(self) -> frozenset[str]:
        """What an x86 processor has of vectors, as Linux names it; for the one at hand Linux knows."""
        if self.arm:
            return frozenset()
        if self.processor == "native":
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            return frozenset(next((line.split(":")[1] for line in lines if line.startswith("flags")), "").split())
        return VECTORS.get(self.processor, frozenset({"avx", "fma", "avx512f"}))

    @property
    def command(self) -> list[str]:
        """The compiler with what it needs to build for this processor."""
        if self.compiler == FETCHED:
            triple = "aarch64-linux-gnu" if self.arm else "x86_64-linux-gnu"
            return [*zig(), "-target", triple, f"-mcpu={ZIG_CPUS[self.processor]}"]
        return [_installed(self.compiler), f"-march={self.processor}"]


CROSS = [
    *(Target(compiler, processor) for compiler in ("gcc", "clang") for processor in X86),
    *(Target(FETCHED, processor) for processor in (*X86, *ARM)),
    *(Target("aarch64-linux-gnu-gcc", processor) for processor in ARM),
]


@cache
def _installed(compiler: str) -> str:
    """The name by which a compiler is here: Debian's versions of clang have their number in it."""
    names = [compiler, *(f"{compiler}-{number}" for number in range(25, 13, -1))]
    return next((name for name in names if shutil.which(name)), compiler)


@cache
def zig() -> tuple[str, ...]:
    """The compiler that our own lock has; fetched only where it is required."""
    cache_place = ROOT / cache_folder()
    place = environments.location(environments.COMPILER, ROOT / "envs", cache_place)
    if not REQUIRED and not environments.ready_file(place).is_file():
        pytest.skip("zig is not here: 'make compilers' fetches it (0.4 GB)")
    return tuple(environments.wheel_compiler(ROOT / "envs", cache_place))


def assembler_text(target: Target, source: Path, folder: Path, sources: Path = native.SOURCES) -> str:
    """What this compiler makes of a C file; a skip where there is no compiler for the processor."""
    if target.compiler != FETCHED:
        _need(target)
    return text_of([*target.command, *native.FLAGS], source, folder, sources)


def text_of(command: Sequence[str], source: Path, folder: Path, sources: Path = native.SOURCES) -> str:
    """What a compiler with these flags makes of a C file."""
    made = folder / f"{source.stem}.s"
    words = [*command, "-g0", "-S", f"-I{sources}", str(source), "-o", str(made)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stderr[-2000:]}"
    return made.read_text(encoding="utf-8")


def _need(target: Target) -> None:
    made_for = "aarch64" if "aarch64" in target.compiler else platform.machine()
    if (made_for == "aarch64") is not target.arm:
        pytest.skip(f"{target.compiler} builds for {made_for} here; zig builds for both")
    if shutil.which(target.command[0]) is None or not knows(target.command):
        assert not (REQUIRED and target.compiler == "gcc"), "gcc is required (CASTMATES_COMPILERS)"
        pytest.skip(f"there is no {target.compiler} that knows {target.processor}")


@cache
def _knows(command: tuple[str, ...]) -> bool:
    return subprocess.run([*command, "-E", "-x", "c", "/dev/null"], capture_output=True, check=False).returncode == 0


def knows(command: Sequence[str]) -> bool:
    """Whether a compiler takes these words, which older ones do not know."""
    return _knows(tuple(command))
