"""Whether a program is the one that its name promises: it is asked for it, because others may have taken the name.

Standard library only, and asked at most once per process and file, so that the doctor stays quick.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

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
