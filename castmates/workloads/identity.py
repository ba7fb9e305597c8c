"""Whether a program is the one that its name promises: it is asked for it, because others may have taken the name.

Standard library only, and asked at most once per process and file, so that the doctor stays quick.
"""

import difflib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from castmates.workloads.native.build import CONTROLS, KERNELS, SERVICES

PATIENCE = 30.0  # seconds: a machine may be busy, but the wait must end


@dataclass(frozen=True)
class Identity:
    """How a program shows that it is the right one."""

    title: str
    option: str
    answer: re.Pattern[str]


def _known(title: str, option: str, answer: str) -> Identity:
    return Identity(title, option, re.compile(answer, re.MULTILINE))


# By Debian package and name of the program. A package that is not listed has nothing to ask (hpcc shows no version).
IDENTITIES = {
    ("bzip2", "bzip2"): _known("bzip2", "--version", r"^bzip2, a block-sorting file compressor"),
    ("gcc", "gcc"): _known("GCC", "--version", r"Free Software Foundation"),
    ("gnugo", "gnugo"): _known("GNU Go", "--version", r"^GNU Go \d"),
    ("imagemagick", "convert"): _known("ImageMagick", "-version", r"^Version: ImageMagick \d"),
    ("memcached", "memcached"): _known("memcached", "-V", r"^memcached \d"),
    ("minisat", "minisat"): _known("MiniSat", "--help", r"^USAGE: \S*minisat .*input-file"),
    ("nginx", "nginx"): _known("nginx", "-v", r"^nginx version: nginx/\d"),
    ("perl", "perl"): _known("Perl", "-v", r"^This is perl \d"),
    ("povray", "povray"): _known("POV-Ray", "--version", r"POV-Ray \d"),
    ("redis-server", "redis-server"): _known("Redis", "--version", r"^Redis server v=\d"),
    ("stockfish", "stockfish"): _known("Stockfish", "quit", r"^Stockfish \d"),
    ("stress-ng", "stress-ng"): _known("stress-ng", "--version", r"^stress-ng, version \d"),
    ("x264", "x264"): _known("x264", "--version", r"^x264 \d"),
    ("xalan", "Xalan"): _known("Xalan", "-?", r"^Xalan version \d"),
    ("xz-utils", "xz"): _known("XZ Utils", "--version", r"\(XZ Utils\) \d"),
    ("zstd", "zstd"): _known("Zstandard", "--version", r"^\*\*\* (?:Zstandard CLI|zstd command line)"),
}


def program_of(package: str) -> str | None:
    """The program by which a package is recognised; None where there is nothing to ask."""
    return next((program for of, program in IDENTITIES if of == package), None)


def foreign(package: str, file: Path) -> str:
    """A clause on why this file is not the program of the package; "" where it is, or has nothing to show."""
    identity = IDENTITIES.get((package, file.name))
    if identity is None:
        return ""
    state = file.stat()
    if identity.answer.search(_answer(file, identity.option, state.st_mtime_ns, state.st_size)):
        return ""
    return (
        f"the program '{file.name}' that is here ({file}) is not {identity.title}: its answer to {identity.option} "
        f"does not show that name"
    )


@lru_cache(maxsize=64)
def _answer(file: Path, option: str, _changed: int, _size: int) -> str:
    """What a program prints; nothing where it cannot be asked. Another state of the file is asked anew."""
    environment = os.environ | {"LC_ALL": "C"}
    try:
        asked = subprocess.run(
            [file, option],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout + asked.stderr


# Whether the program of a command is on this machine; standard library only, and fast enough for the doctor.

WRAPPER = re.compile(r"(?:.*/)?(?:sh|bash|dash|env|python[\d.]*|\{python\})")  # the package shows what it runs
# What the load generator starts, by its option; Debian keeps one of them out of the PATH of some.
SERVERS = {"memcached": "memcached", "redis": "redis-server", "nginx": "nginx"}
SERVERS_AT = "/usr/sbin"
GAMES = "/usr/games"  # where Debian puts games, out of the PATH of some
# A program that a compiler knows the place of; only compilers are asked, and those of the PATH.
ASKED = re.compile(r"(?<![\w.+/-])((?:[\w.+-]+-)?(?:g?cc|g\+\+|clang)(?:-\d+)?) -print-prog-name=([\w.+-]+)")


def lack(command: Sequence[str], package: str | None, path: str) -> str:
    """A clause that names which program this command lacks here; "" where it lacks none that we know of."""
    program = command[0]
    if Path(program).name in SERVICES:
        return _lack_of_service(command, package, path)
    if program != "{python}" and shutil.which(program, path=path) is None:
        return no_such_program(program, path)
    if package is None:
        return ""
    if not WRAPPER.fullmatch(program):
        # Who names a file means that file, which may be a stranger's: it would have to be run to show what it is.
        return "" if "/" in program else _foreign(program, package, path)
    # The same where the program is started by another one, such as a shell: only the package shows which it is.
    asked = [found for word in command for found in ASKED.findall(word)]
    for whom, what in asked:
        if shutil.which(whom, path=path) is None or not _knows(whom, what):
            return f"there is no program '{what}'"
    wanted, everywhere = program_of(package) or package, os.pathsep.join([path, GAMES])
    if shutil.which(wanted, path=everywhere):
        return _foreign(wanted, package, everywhere)
    return "" if asked or _has_package(package) else f"there is no program '{package}'"


def no_such_program(program: str, path: str) -> str:
    """A clause that names a program which is not there, and one with a name like it, where there is one."""
    if "/" in program:
        why = "the file may not be run" if Path(program).is_file() else "there is no such file"
        return f"there is no program '{program}': {why}"
    folders = [folder for folder in map(Path, path.split(os.pathsep)) if folder.is_dir()]
    known = {file.name for folder in folders for file in folder.iterdir()}
    near = difflib.get_close_matches(program, sorted(known), n=1, cutoff=0.75)
    return f"there is no program '{program}'" + (f", did you mean '{near[0]}'?" if near else "")


def _lack_of_service(command: Sequence[str], package: str | None, path: str) -> str:
    """The same of a service: its load generator is ours, and compiled where it is wanted; the server is not."""
    words = [*command, ""]
    server = words[words.index("--server") + 1] if "--server" in words else ""
    program, everywhere = SERVERS.get(server), os.pathsep.join([path, SERVERS_AT])
    if program is None:
        return ""  # what it is started with is for the load generator to judge
    if shutil.which(program, path=everywhere) is None:
        return f"there is no program '{program}'"
    return _foreign(program, package, everywhere) if package else ""


def _foreign(program: str, package: str, path: str) -> str:
    found = shutil.which(program, path=path)
    return foreign(package, Path(found)) if found else ""


def is_kernel(program: str) -> bool:
    """Whether this is one of our own native programs, which are compiled where they are wanted."""
    return program in (*KERNELS, *CONTROLS)


def _knows(whom: str, what: str) -> bool:
    """Ask a compiler where one of its parts is: it answers with the bare name where it has none."""
    try:
        command = [whom, f"-print-prog-name={what}"]
        asked = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return Path(asked.stdout.strip()).is_file()


def origin(command: Sequence[str], path: str) -> str | None:
    """Where the file of a command's program really lies; None where there is none."""
    found = shutil.which(command[0], path=path)
    return None if found is None else str(Path(found).resolve())


def package_version(package: str) -> str | None:
    """Ask dpkg for the version of a package that is installed; None where it is not, or there is no dpkg."""
    command = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}\\n", package]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = (line.partition(" ") for line in asked.stdout.splitlines())
    return next((version for status, _, version in found if status == "installed"), None)


def _has_package(package: str) -> bool:
    """Whether dpkg has the package installed; True where there is no dpkg to know."""
    return shutil.which("dpkg-query") is None or package_version(package) is not None
