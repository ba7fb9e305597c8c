"""Where Slurm comes from: Debian's packages, unpacked without root: `make test-slurm`.

python -m tests.slurm.packages
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.lab.kit.common import NoLab, whole
from tests.lab.kit.debian import Debian, libraries, unfit, unpack

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
NEEDED = ("apt-get", "apt-cache", "dpkg", "tar")
PROGRAMS = ("usr/bin", "usr/sbin")
ALTERNATIVE = "-wlm"  # a script of the packages would make the usual names
CONF = "CASTMATES_TEST_CLUSTER"  # Snakemake's plugin takes SLURM_CONF from jobs, as a cluster has its file in /etc
# Programs of Slurm start each other, so each finds its libraries by itself, whatever environment it is given.
RUN = """\
#!/bin/sh
[ "$SLURM_CONF" ] || export SLURM_CONF="${conf}"
LD_LIBRARY_PATH="{libraries}" exec "{program}" "$@"
"""


@dataclass(frozen=True)
class Slurm:
    """Slurm's programs on this machine, not yet running."""

    programs: Path  # a folder for the PATH
    plugins: Path
    step: Path  # slurmstepd, which slurmd starts
    libraries: str = ""  # where slurmstepd finds them


def cache() -> Path:
    """Where the packages are unpacked: $CASTMATES_SLURM_CACHE, or .cache/slurm in the project."""
    return Path(os.environ.get("CASTMATES_SLURM_CACHE") or PROJECT / ".cache/slurm").absolute()


def here() -> Slurm | None:
    """What was unpacked before."""
    folder = cache() / "unpacked"
    if not (folder / "run/slurmctld").exists():
        return None
    plugins = next(folder.glob("usr/lib/*/slurm-wlm"))
    return Slurm(folder / "run", plugins, folder / f"usr/sbin/slurmstepd{ALTERNATIVE}", _libraries(folder))


def fetch(say: Callable[[str], object]) -> Slurm:
    """Unpack Debian's Slurm and what it needs into the cache; NoLab explains why that cannot be."""
    if reason := unfit(NEEDED):
        raise NoLab(reason)
    say(f"Fetching Slurm into {cache()} (once; about 4 MB to fetch, 14 MB unpacked)")
    packages = Debian(cache() / "debian")
    shutil.rmtree(packages.folder, ignore_errors=True)  # of a fetch that was broken off: older lists
    packages.update()
    with whole(cache() / "unpacked") as folder:
        unpack(packages.fetch(*{*packages.lacking(*PACKAGES), *PACKAGES}), folder)
        final = cache() / "unpacked"
        (folder / "run").mkdir()
        for program in (file for place in PROGRAMS for file in (folder / place).iterdir()):
            run = folder / "run" / program.name.removesuffix(ALTERNATIVE)
            run.write_text(
                RUN.format(conf=CONF, libraries=_libraries(folder, final), program=final / program.relative_to(folder))
            )
            run.chmod(0o755)
    packages.forget()
    found = here()
    assert found is not None
    return found


def why_not(fetching: bool) -> str:
    """Return why there is no Slurm here, or an empty text; it is fetched before if that is wanted."""
    try:
        if here() is None and fetching:
            fetch(print)
    except NoLab as problem:
        return f"Slurm cannot be had here: {problem}"
    return "" if here() else "there is no Slurm here: `make test-slurm` fetches it without root"


def _libraries(folder: Path, final: Path | None = None) -> str:
    return ":".join(str((final or folder) / holder) for holder in libraries(folder))


if __name__ == "__main__":
    sys.exit(why_not(fetching=True) or None)
