"""Where the twins come from that this machine lacks: Debian's packages, unpacked without root: `make twins`.

python -m tests.runner.twin_packages
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from castmates.workloads.identity import GAMES
from tests.lab.kit.alone import alone
from tests.lab.kit.common import NoLab, whole
from tests.lab.kit.debian import Debian, libraries, unfit, unpack

PROJECT = Path(__file__).resolve().parents[2]
NEEDED = ("apt-get", "apt-cache", "dpkg", "tar")
NOT_NEEDED = ("doc", "icons", "locale", "man", "perl")
# Package -> its program, where it lies, and words with which it starts and ends at once.
TWINS = {
    "gnugo": ("gnugo", "usr/games/gnugo", "--version"),
    "hpcc": ("hpcc", "usr/bin/hpcc", ""),  # it has no such words
    "minisat": ("minisat", "usr/bin/minisat", "--help"),
    "memcached": ("memcached", "usr/bin/memcached", "-V"),
    "nginx": ("nginx", "usr/sbin/nginx", "-v"),
    "povray": ("povray", "usr/bin/povray", "--version"),
    "redis-server": ("redis-server", "usr/bin/redis-server", "-v"),
    "stockfish": ("stockfish", "usr/games/stockfish", "quit"),
    "stress-ng": ("stress-ng", "usr/bin/stress-ng", "--version"),
    "x264": ("x264", "usr/bin/x264", "--version"),
    "xalan": ("Xalan", "usr/bin/Xalan", "-?"),
}
# Where they look for their own files besides libraries: OPAL_PREFIX is Open MPI's, in which hpcc runs.
RUN = """\
#!/bin/sh
# {program} with the libraries that lie beside it.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
export LD_LIBRARY_PATH="{libraries}" POVINI="$here/etc/povray/3.7/povray.ini" OPAL_PREFIX="$here/usr"
exec "$here/{place}" "$@"
"""


def cache() -> Path:
    """Where the packages are unpacked: $CASTMATES_TWINS_CACHE, or .cache/twins in the project."""
    return Path(os.environ.get("CASTMATES_TWINS_CACHE") or PROJECT / ".cache/twins").absolute()


def folder() -> Path:
    """The folder of their programs; it comes last on the PATH, so that what is installed is used first."""
    return cache() / "unpacked/bin"


def lacking() -> list[str]:
    """Name the packages whose program neither this machine has nor a folder of ours, or does not start."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), GAMES, str(folder())])
    return [
        package for package, (program, _, word) in TWINS.items() if not _starts(shutil.which(program, path=path), word)
    ]


def _starts(program: str | None, word: str) -> bool:
    """Check whether it finds its libraries: a cache may come from a machine that lacked others than this one."""
    if program is None or not word:
        return program is not None
    try:
        said = subprocess.run(
            [program, word],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "error while loading shared libraries" not in said.stderr and said.returncode != 127


def fetch(say: Callable[[str], object]) -> None:
    """Unpack what this machine lacks of them, and of what they need; NoLab explains why that cannot be."""
    if reason := unfit(NEEDED):
        raise NoLab(reason)
    with alone(cache(), say):
        if lacking():  # else another process has just fetched them
            _fetch(say)


def _fetch(say: Callable[[str], object]) -> None:
    say(f"Fetching {', '.join(TWINS)} into {cache()}")
    say("(once; 66 MB of packages and 40 MB of lists to fetch, 200 MB unpacked)")
    packages = Debian(cache() / "debian")
    shutil.rmtree(packages.folder, ignore_errors=True)  # of a fetch that was broken off: older lists
    packages.update()
    with whole(cache() / "unpacked") as place:
        unpack(packages.fetch(*packages.lacking(*TWINS)), place)
        for part in NOT_NEEDED:
            shutil.rmtree(place / "usr/share" / part, ignore_errors=True)
        holders = ":".join(f"$here/{holder}" for holder in libraries(place))
        (place / "bin").mkdir(exist_ok=True)
        for program, lies, _ in TWINS.values():
            if (place / lies).exists():
                run = place / "bin" / program
                run.write_text(RUN.format(program=program, libraries=holders, place=lies))
                run.chmod(0o755)
    packages.forget()


def why_not(fetching: bool) -> str:
    """Return which twins are not here, or an empty text; they are fetched before if that is wanted."""
    try:
        if lacking() and fetching:
            fetch(print)
    except NoLab as problem:
        return f"the twins cannot be had here: {problem}"
    left = lacking()
    return f"there is no {', '.join(left)} here: `make twins` fetches them without root" if left else ""


if __name__ == "__main__":
    sys.exit(why_not(fetching=True) or None)
