"""C++'s names of functions in a readable form, without their parameters, by c++filt of binutils.

perf can do it, too, but does it for every function of every library: of 7 s for TensorFlow's this takes 4, and 0.3 GB.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable

TIMEOUT = 60.0
MANGLED = ("_Z", "_R", "__Z")


def can_demangle() -> bool:
    """Whether there is a c++filt here; perf does it where there is none."""
    return shutil.which("c++filt") is not None


def demangled(names: Iterable[str]) -> dict[str, str]:
    """The readable form of each name that has one."""
    asked = sorted({name for name in names if name.startswith(MANGLED)})
    if not asked or not can_demangle():
        return {}
    try:
        done = subprocess.run(
            ["c++filt", "-p"], input="\n".join(asked) + "\n", capture_output=True, text=True, errors="replace",
            timeout=TIMEOUT, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    answers = done.stdout.splitlines()
    if len(answers) != len(asked):
        return {}
    pairs = zip(asked, answers, strict=True)
    return {name: (scopes(name) if answer == name else answer).replace(";", ":") for name, answer in pairs}


def scopes(name: str) -> str:
    """The scopes at the begin of a name that c++filt does not know, as it is with new forms of templates."""
    found = re.match(r"_Z(Z?)N[KVO]*(?=\d)", name)
    if found is None:
        return name
    at, parts = found.end(), []
    while length := re.match(r"\d+", name[at:]):
        at += length.end()
        parts.append(name[at : at + int(length[0])])
        at += int(length[0])
    return "::".join([*parts, *(["{inside}"] if found[1] else [])])
