"""Compiles the native kernels with whatever C compiler works here."""

import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from castmates.errors import CastmatesError

SOURCES = Path(__file__).parent
TRIALS = ("known",)  # what is no workload: `castmates doctor` runs them
KEEPERS = ("loop", "lines", "count")  # of programs that end, or without a heartbeat
CONTROLS = ("tax", "taxed")  # a pair with a known loss
SERVICES = ("openloop",)  # load generators, which start servers of other people
BARRIERS = "barriers"  # of programs that were patched for BenchCast
BARRIERS_VARIABLE = "CASTMATES_BARRIERS"  # names their heartbeat
LIBRARIES = (BARRIERS,)  # that are preloaded
# A C file is a program; these are what a workload's command may begin with.
KERNELS = tuple(sorted({file.stem for file in SOURCES.glob("*.c")}.difference(TRIALS, SERVICES, CONTROLS, LIBRARIES)))
OF_WORKLOADS = (*KERNELS, *SERVICES, *CONTROLS)
AT_ONCE = 2  # compilers

# pipe2 and the clocks need the GNU dialect; a multiplication and an addition stay two instructions unless a kernel asks
# for a fused one; `zig cc` would add the undefined-behaviour sanitizer by itself.
FLAGS = ("-std=gnu11", "-O3", "-pthread", "-ffp-contract=off", "-fno-sanitize=undefined")
OF_LIBRARIES = ("-shared", "-fPIC", "-DCM_PRELOADED")
NATIVE_FLAGS = ("-march=native", "-mcpu=native")  # not every compiler knows the first on every machine

_COMMENT = re.compile(r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL)
_PROBE = '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n'


def find_compiler() -> list[str] | None:
    """Return the command of the first C compiler that really compiles a program, or None."""
    chosen = shlex.split(os.environ.get("CC", ""))
    candidates = [chosen] if chosen else []
    candidates += [["cc"], ["gcc"], ["clang"]]
    return next((compiler for compiler in candidates if _compiles(compiler, ())), None)


def fingerprint() -> str:
    """Digest what decides about the binaries, all of them: sources, flags and this machine's processor."""
    return _digest([_flags(), platform.machine(), _cpu_flags(), *_texts(SOURCES.glob("*.[ch]"))])


def sources() -> str:
    """Digest what decides about the binaries besides the processor that they are built on."""
    return _digest([_flags(), *_texts(SOURCES.glob("*.[ch]"))])[:12]


def content(kernel: str) -> str:
    """Digest what one kernel does, wherever it is built: its own source, what that includes, and the flags.

    Comments and blank lines do not count: a better comment has nothing measured again.
    """
    return _digest([_flags(), *map(_without_comments, _texts(_included(SOURCES / f"{kernel}.c", set())))])


def _without_comments(text: str) -> str:
    code = _COMMENT.sub(lambda match: match[1] or " ", text)
    return "\n".join(line.rstrip() for line in code.splitlines() if line.strip())


def _included(source: Path, seen: set[Path]) -> set[Path]:
    """Add a source and the files of ours that it includes, or that these include, to those seen."""
    if source not in seen and source.is_file():
        seen.add(source)
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', source.read_text(encoding="utf-8"), re.MULTILINE):
            _included(source.parent / name, seen)
    return seen


def _flags() -> str:
    return " ".join((*FLAGS, *NATIVE_FLAGS))


def _texts(files: Iterable[Path]) -> Iterator[str]:
    for file in sorted(files):
        yield from (file.name, file.read_text(encoding="utf-8"))


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def build(bin_dir: Path, compiler: list[str], programs: Sequence[str] = ()) -> None:
    """Compile these programs, or all, into this directory, a few at a time."""
    bin_dir.mkdir(parents=True, exist_ok=True)
    programs = programs or (*OF_WORKLOADS, *TRIALS, *LIBRARIES)
    flags = compile_flags(compiler)
    print(f"Compiling {len(programs)} programs with {shlex.join(compiler)}", file=sys.stderr)
    with ThreadPoolExecutor(AT_ONCE) as at_once:
        jobs = [
            at_once.submit(compile_program, SOURCES / f"{kernel}.c", bin_dir / kernel, compiler, flags)
            if kernel not in LIBRARIES
            else at_once.submit(
                compile_program, SOURCES / f"{kernel}.c", bin_dir / f"{kernel}.so", compiler, (*flags, *OF_LIBRARIES)
            )
            for kernel in programs
        ]
        try:
            for job in jobs:
                job.result()
        except BaseException:
            at_once.shutdown(cancel_futures=True)
            raise


def compile_flags(compiler: Sequence[str]) -> tuple[str, ...]:
    """Return the flags for this compiler, with the way it spells "for this very processor" if it has one."""
    native = (flag for flag in NATIVE_FLAGS if _compiles(compiler, (*FLAGS, flag)))
    return (*FLAGS, *[flag for flag in [next(native, None)] if flag])


def compile_program(source: Path, program: Path, compiler: Sequence[str], flags: Sequence[str]) -> None:
    """Compile one C file that may include the headers of this directory."""
    command = [*compiler, *flags, f"-I{SOURCES}", str(source), "-o", str(program), "-lm", "-ldl"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CastmatesError(
            f"The C compiler {shlex.join(compiler)} cannot be started ({error.strerror}): set CC to one that works."
        ) from error
    if done.returncode != 0:
        raise CastmatesError(
            f"The C compiler {shlex.join(compiler)} failed on {source.name}: "
            f"{_first_error(done.stderr, done.returncode)}; set CC to another compiler or repair this one."
        )


def _first_error(output: str, status: int) -> str:
    """Pick the line of a compiler's output that names what is wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return next(iter(errors or lines), f"it ended with status {status} without a message")


def _compiles(compiler: Sequence[str], flags: Sequence[str]) -> bool:
    """Try a two-line program, because a compiler that is there may still be broken."""
    with tempfile.TemporaryDirectory(prefix="castmates-cc-") as directory:
        source = Path(directory) / "probe.c"
        source.write_text(_PROBE, encoding="utf-8")
        try:
            compile_program(source, source.with_suffix(""), compiler, flags)
        except CastmatesError:
            return False
        return True


def _cpu_flags() -> str:
    """Return the line of /proc/cpuinfo that lists what the processor can do; Arm calls it Features."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
