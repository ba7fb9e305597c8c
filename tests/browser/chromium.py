"""Where Chromium comes from: this machine's own, or Debian's packages unpacked without root: `make browser`.

python -m tests.browser.chromium
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.lab.kit.alone import alone
from tests.lab.kit.common import NoLab, whole
from tests.lab.kit.debian import Debian, libraries, unfit, unpack

PROJECT = Path(__file__).resolve().parents[2]
INSTALLED = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = "chromium"
LETTERS = "fonts-dejavu-core"  # always beside it: it looks for letters nowhere else, and dies without any
NEEDED = ("apt-get", "apt-cache", "dpkg", "tar")
NOT_NEEDED = ("doc", "icons", "locale", "man")
RUN = """\
#!/bin/sh
# Chromium with the libraries and the letters that lie beside it.
here=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="{libraries}" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/usr/lib/chromium/chromium" "$@"
"""
FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""


def cache() -> Path:
    """Where the packages are unpacked: $CASTMATES_BROWSER_CACHE, or .cache/browser in the project."""
    return Path(os.environ.get("CASTMATES_BROWSER_CACHE") or PROJECT / ".cache/browser").absolute()


def here() -> Path | None:
    """The Chromium that is here already."""
    found = next((path for name in INSTALLED if (path := shutil.which(name))), None)
    unpacked = cache() / "chromium/run"
    return Path(found) if found else unpacked if unpacked.is_file() and _starts(unpacked) else None


def _starts(program: Path) -> bool:
    """Whether it finds its libraries: a cache may come from a machine that lacked others than this one."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0


def fetch(say: Callable[[str], object]) -> Path:
    """Unpack Debian's Chromium and what it needs into the cache; NoLab explains why that cannot be."""
    if reason := unfit(NEEDED):
        raise NoLab(reason)
    with alone(cache(), say):
        return here() or _fetch(say)  # another process may just have fetched it


def _fetch(say: Callable[[str], object]) -> Path:
    say(f"Fetching Chromium into {cache()} (once; about 210 MB to fetch, 600 MB unpacked)")
    packages = Debian(cache() / "debian")
    shutil.rmtree(packages.folder, ignore_errors=True)  # of a fetch that was broken off: another machine's, older lists
    packages.update()
    with whole(cache() / "chromium") as folder:
        unpack(packages.fetch(*{*packages.lacking(PROGRAM), LETTERS}), folder)
        for part in NOT_NEEDED:
            shutil.rmtree(folder / "usr/share" / part, ignore_errors=True)
        (folder / "fonts.conf").write_text(FONTS)
        run = folder / "run"
        run.write_text(RUN.format(libraries=":".join(f"$here/{holder}" for holder in libraries(folder))))
        run.chmod(0o755)
    packages.forget()
    return cache() / "chromium/run"


if __name__ == "__main__":
    try:
        print(here() or fetch(print))
    except NoLab as problem:
        sys.exit(f"Chromium cannot be had here: {problem}.")
