"""Debian packages without root: from the mirror that this machine's apt knows, unpacked into folders of ours."""

import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.lab.kit.common import NoLab, call, whole

RELEASE = "bookworm"
# Backports have the younger kernels: those to this release 6.12, those to the next one 7.2. apt takes nothing else of
# them unless it is told to.
SUITES = (RELEASE, f"{RELEASE}-updates", f"{RELEASE}-backports", "trixie-backports")
NEEDED = ("apt-get", "apt-cache", "dpkg", "gcc", "strip", "tar", "bash", "setpriv")
_CALLED = {RELEASE, "stable", "oldstable"}  # how a machine's configuration may call it


def unfit(needed: Sequence[str] = NEEDED) -> str | None:
    """Return why nothing can be had out of Debian 12's packages here, with these programs; None where it can."""
    if platform.machine() != "x86_64":
        return f"it is built out of Debian's amd64 packages, and this machine is {platform.machine()}"
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    if system.get("VERSION_CODENAME") != RELEASE:
        return f"it is built out of Debian 12's packages, and this is {system.get('PRETTY_NAME', 'another system')}"
    if lacking := [name for name in needed if shutil.which(name) is None]:
        return f"this machine lacks {', '.join(lacking)}"
    return None


class Debian:
    """An apt with its own lists and packages in one folder; the machine's are neither read nor changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.packages = self.folder / "packages"

    def update(self) -> None:
        """Fetch the lists of what there is."""
        for part in ("lists/partial", "cache/archives/partial", "none", "packages"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        uri, keyring = mirror(_source_files())
        option = f"[signed-by={keyring}] " if keyring else ""
        lines = [f"{kind} {option}{uri} {suite} main\n" for suite in SUITES for kind in ("deb", "deb-src")]
        (self.folder / "sources.list").write_text("".join(lines))
        settings = {
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": self.folder / "none",
            "Dir::State::lists": self.folder / "lists",
            "Dir::Cache": self.folder / "cache",
            "APT::Sandbox::User": "root",  # apt's own user may not write into our folder
            "Acquire::Languages": "none",
            "Acquire::Retries": 2,
            "Acquire::http::Timeout": 30,
            "Acquire::https::Timeout": 30,
        }
        (self.folder / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in settings.items()))
        self._call("apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update")

    def forget(self) -> None:
        """Remove everything that was fetched."""
        shutil.rmtree(self.folder)

    def names(self, begin: str) -> list[str]:
        """Name the packages whose name begins so."""
        return self._call("apt-cache", "pkgnames", begin).split()

    def lacking(self, *names: str) -> list[str]:
        """Name what apt would add here to have these packages."""
        said = self._call("apt-get", "-q", "--simulate", "--no-install-recommends", "install", *names)
        return re.findall(r"^Inst (\S+)", said, re.M)

    def fetch(self, *names: str) -> list[Path]:
        """Fetch those packages that are not yet here; return all their files."""
        if missing := [name for name in names if self._found(name) is None]:
            with whole(self.folder / "fetched") as folder:  # a broken download never gets a package's place
                self._call("apt-get", "-q", "download", *missing, cwd=folder)
            for file in (self.folder / "fetched").glob("*.deb"):
                file.replace(self.packages / file.name)
        return [found for name in names if (found := self._found(name))]

    def fetch_source(self, name: str, preferred: str) -> Path:
        """Fetch a source package, in this version if it is there; return the folder of its files."""
        versions = re.findall(r"^Version: (\S+)$", self._call("apt-cache", "showsrc", "--only-source", name), re.M)
        if not versions:
            raise NoLab(f"the mirror of this machine has no source of {name}")
        version = preferred if preferred in versions else max(versions, key=numbers)
        folder = self.folder / f"{name}-{version}".replace(":", "-")
        if not folder.is_dir():
            with whole(folder) as part:
                self._call("apt-get", "-q", "source", "--download-only", f"{name}={version}", cwd=part)
        return folder

    def _found(self, name: str) -> Path | None:
        return next(self.packages.glob(f"{name}_*.deb"), None)

    def _call(self, *words: str, cwd: Path | None = None) -> str:
        return call(words, cwd=cwd, environment={"APT_CONFIG": str(self.folder / "apt.conf")})


def unpack(packages: Iterable[Path], folder: Path) -> None:
    """Unpack packages into a folder as if it were /; none of their scripts is run."""
    for package in packages:
        call(["dpkg", "-x", package, folder])


def libraries(folder: Path) -> list[Path]:
    """List the folders with libraries among what was unpacked, relative to it."""
    return sorted({file.parent.relative_to(folder) for file in folder.glob("**/lib*.so*")})


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers in a version: they order those of one package."""
    return tuple(map(int, re.findall(r"\d+", version)))


def mirror(texts: Iterable[str]) -> tuple[str, str | None]:
    """Find in apt's source files where Debian comes from, and the keyring that it is trusted by.

    apt knows two notations: lines `deb [options] URI bookworm main`, and paragraphs with `URIs:` and `Suites:`.
    """
    for text in texts:
        for options, uri, suite in re.findall(r"^deb\s+(?:\[(.*?)\]\s*)?(\S+)\s+(\S+)", text, re.M):
            if suite in _CALLED:
                key = re.search(r"signed-by=(/\S+)", options)
                return uri, key[1] if key else None
        for paragraph in re.split(r"\n\s*\n", text):
            field = dict(re.findall(r"^([\w-]+):[ \t]*(.+)$", paragraph, re.M))
            if "deb" in field.get("Types", "").split() and _CALLED & set(field.get("Suites", "").split()):
                key = field.get("Signed-By", "").strip()
                return field["URIs"].split()[0], key if key.startswith("/") else None
    raise NoLab(f"this machine's apt knows no mirror of Debian's {RELEASE}")


def _source_files() -> Iterator[str]:
    for place in (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d")):
        files = [place] if place.is_file() else sorted([*place.glob("*.list"), *place.glob("*.sources")])
        yield from (file.read_text(errors="replace") for file in files)
