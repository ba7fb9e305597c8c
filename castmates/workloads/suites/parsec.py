"""PARSEC 3: a package as `parsecmgmt -a run` runs it, from its own run configuration and input archive."""

import re
import subprocess
from functools import cached_property
from pathlib import Path

from castmates.workloads.suites.job import PrivateCopy, Step, SuiteError, digest_of

RUN_EXEC = re.compile(r"^\s*run_exec=[\"']?([^\"'\s]+)", re.MULTILINE)
# A run configuration is a piece of bash; parsecmgmt sources it, and so do we. $1: the file, $2: the installed build.
RUN = 'source "$1" || exit 125; eval "exec \\"\\$2\\"/$run_exec $run_args"'


class Package:
    """A package such as pkgs/apps/blackscholes, one build of it and one size of its input."""

    def __init__(self, root: Path, folder: Path, build: str, size: str, threads: int) -> None:
        self.root, self.home, self.build, self.size, self.threads = root, root / folder, build, size, threads
        self.name = self.home.name

    @property
    def configuration(self) -> Path:
        """The file with the program and its arguments for a size."""
        return self.home / "parsec" / f"{self.size}.runconf"

    @property
    def installed(self) -> Path:
        """Where a build of it lies."""
        return self.home / "inst" / self.build

    @cached_property
    def _program(self) -> Path:
        try:
            found = RUN_EXEC.search(self.configuration.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            found = None
        if found is None:
            raise SuiteError(f"{self.configuration} is not there, or has no 'run_exec'")
        program = self.installed / found[1]
        if not program.is_file():
            raise SuiteError(
                f"{program} is not there, but {self.configuration} names it; build it "
                f"(parsecmgmt -a build -p {self.name})"
            )
        return program

    def digest(self) -> str:
        """Digest the programs and commands."""
        others = sorted(file for file in self._program.parent.iterdir() if file.is_file())
        return digest_of([self.configuration, *others])

    def _archive(self, kind: str) -> Path:
        home = self.home
        if home.parent.name == "netapps":  # netdedup has the input of dedup, as in parsecmgmt
            group = "apps" if self.name == "netferret" else "kernels"
            home = self.home.parent.parent / group / self.name.removeprefix("net")
        return home / f"{kind}s" / f"{kind}_{self.size}.tar"

    def prepare(self, place: Path) -> None:
        """Fill an empty folder with what a run needs."""
        self._program  # noqa: B018 (says what is missing)
        self._place, archive = place / "run", self._archive("input")
        self._place.mkdir()
        if archive.is_file():
            _unpack(archive, self._place)
        self._copy = PrivateCopy(self._place, lambda name: _unpack(archive, self._place, name))

    def renew(self) -> None:
        """Make the folder what it was before the first run."""
        self._copy.renew()

    def steps(self) -> list[Step]:
        """The commands of one run, in order."""
        known = {"NTHREADS": str(self.threads), "PARSECDIR": str(self.root), "PARSECPLAT": self.build}
        command = ["bash", "-c", RUN, self.name, str(self.configuration), str(self.installed)]
        shown = f"{self.name}, {self.configuration.name}, {self.threads} threads"
        return [Step(shown, command, self._place, self._place.parent / "benchmark.out", known)]

    def wrong(self) -> str:
        """Compare with the output archive byte by byte; most packages of PARSEC have none."""
        archive = self._archive("output")
        if not archive.is_file():
            return ""
        expected = self._place.parent / "expected"
        expected.mkdir(exist_ok=True)
        _unpack(archive, expected)
        for file in sorted(file for file in expected.rglob("*") if file.is_file()):
            made = self._place / file.relative_to(expected)
            if not made.is_file() or made.read_bytes() != file.read_bytes():
                how = "differs" if made.is_file() else "is missing"
                return f"{file.relative_to(expected)} {how} ({archive.name})"
        return ""


def _unpack(archive: Path, place: Path, *names: str) -> None:
    # A member may be written ./NAME in the archive.
    wanted = ["--wildcards", "--no-anchored", *names] if names else []
    done = subprocess.run(
        ["tar", "-xf", str(archive), "-C", str(place), *wanted], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = next(iter(done.stderr.splitlines()), f"status {done.returncode}")
        raise SuiteError(f"{archive} cannot be unpacked: {said}")
