"""Whether the program of a command is on this machine; standard library only, and fast enough for the doctor."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from castmates.workloads import identity
from castmates.workloads.native.build import KERNELS, SERVICES

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
        return f"there is no program '{program}'"
    if package is None:
        return ""
    if not WRAPPER.fullmatch(program):
        # Who names a file means that file, which may be a stranger's: it would have to be run to show what it is.
        return "" if "/" in program else _foreign(program, package, path)
    return _lack_of_wrapped(command, package, path)


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


def _lack_of_wrapped(command: Sequence[str], package: str, path: str) -> str:
    """The same where the program is started by another one, such as a shell: only the package shows which it is."""
    asked = [found for word in command for found in ASKED.findall(word)]
    for whom, what in asked:
        if shutil.which(whom, path=path) is None or not _knows(whom, what):
            return f"there is no program '{what}'"
    wanted, everywhere = identity.program_of(package) or package, os.pathsep.join([path, GAMES])
    if shutil.which(wanted, path=everywhere):
        return _foreign(wanted, package, everywhere)
    return "" if asked or _has_package(package) else f"there is no program '{package}'"


def _foreign(program: str, package: str, path: str) -> str:
    found = shutil.which(program, path=path)
    return identity.foreign(package, Path(found)) if found else ""


def is_kernel(program: str) -> bool:
    """Whether this is one of our own native programs, which are compiled where they are wanted."""
    return program in KERNELS


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
