"""QEMU with RDT: Debian's QEMU 7.2, static, out of Debian's packages, with the files of `processor/`.

Each step is skipped where its mark shows that it was done, so that a build that was killed goes on.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.lab.kit.common import Say, call, whole
from tests.lab.kit.debian import Debian, unpack

HERE = Path(__file__).parent
PATCH = HERE / "processor/hooks.patch"
SOURCES = {  # where they go
    **dict.fromkeys(("rdt.c", "rdt.h", "cache.c", "cache.h"), "target/i386"),
    "rr-lockstep.h": "include/exec",
}
LOCK = HERE / "build-tools.lock"
VERSION = "7.2+dfsg-7+deb12u18"  # preferred; any other of Debian 12 has the same sources and more security patches
LIBRARIES = (
    *("libglib2.0-0", "libglib2.0-dev", "libglib2.0-dev-bin", "libpixman-1-0", "libpixman-1-dev", "libattr1"),
    *("libattr1-dev", "libcap-ng0", "libcap-ng-dev", "libpcre2-8-0", "libpcre2-dev", "libffi8", "libffi-dev"),
    *("libfdt1", "libfdt-dev", "libmount-dev", "libselinux1-dev", "libblkid-dev", "libsepol-dev", "zlib1g-dev"),
)
FIRMWARE = {
    "usr/share/seabios": ("bios-256k.bin",),
    "usr/share/qemu": ("linuxboot_dma.bin", "linuxboot.bin", "kvmvapic.bin", "multiboot_dma.bin"),
}
# Programs that a machine with gcc and Python may lack: the one in the package, and the packages.
TOOLS = {
    "make": ("make", ("make",)),
    "patch": ("patch", ("patch",)),
    "xz": ("xz", ("xz-utils", "liblzma5")),
    "pkg-config": ("pkgconf", ("pkgconf-bin", "libpkgconf3")),
}
MULTIARCH = "usr/lib/x86_64-linux-gnu"
FEATURES = (
    "--target-list=x86_64-softmmu",
    "--without-default-features",
    "--without-default-devices",
    "--with-devices-x86_64=rdtlab",  # the few devices that the patch names
    "--enable-tcg",
    "--disable-kvm",
    *("--enable-virtfs", "--enable-attr", "--enable-cap-ng"),  # the guest sees our files
    "--enable-fdt=system",
    "--static",
    *("--disable-docs", "--disable-tools", "--disable-guest-agent", "--disable-blobs", "--disable-install-blobs"),
    "--disable-werror",
)


class Build:
    """One build in a folder for scraps."""

    def __init__(self, debian: Debian, work: Path, say: Say) -> None:
        self.debian, self.work, self.say = debian, work, say
        self.bin, self.libraries = work / "bin", work / "libraries"
        self.source, self.objects = work / "source", work / "objects"

    def into(self, product: Path) -> None:
        """Build it, and leave the program and its firmware in `product`."""
        self.work.mkdir(parents=True, exist_ok=True)
        for step, what in (
            (self.bring_tools, "the build's tools"),
            (self.bring_libraries, "libraries"),
            (self.bring_source, "QEMU's sources"),
            (self.configure, "configuring QEMU"),
            (self.compile, "compiling QEMU"),
        ):
            self._once(step, what)
        self._keep(product)
        shutil.rmtree(self.work)

    def bring_tools(self) -> None:
        """Put meson and ninja, and what this machine lacks, into a folder of programs."""
        venv, unpacked = self.work / "venv", self.work / "tools"
        call([sys.executable, "-m", "venv", "--clear", "--without-pip", venv])
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", f"{venv}/bin/python"]
        call([*pip, "install", "--quiet", "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)])
        self.bin.mkdir(exist_ok=True)
        self._wrap("python3", f'exec "{sys.executable}" "$@"')
        for name in ("meson", "ninja"):
            self._wrap(name, f'exec "{venv}/bin/{name}" "$@"')
        for name, (program, packages) in TOOLS.items():
            if shutil.which(name) is None:
                unpack(self.debian.fetch(*packages), unpacked)
                own = f'LD_LIBRARY_PATH="{unpacked / MULTIARCH}" exec "{unpacked}/usr/bin/{program}"'
                self._wrap(name, f'{own} "$@"')

    def bring_libraries(self) -> None:
        """Unpack the libraries, and make pkg-config's files point to where they are now."""
        unpack(self.debian.fetch(*LIBRARIES), self.libraries)
        for file in (self.libraries / MULTIARCH / "pkgconfig").glob("*.pc"):
            lines = file.read_text().splitlines(keepends=True)
            file.write_text("".join(line.replace("=/usr", f"={self.libraries}/usr", 1) for line in lines))

    def bring_source(self) -> None:
        """Unpack the sources, apply Debian's patches, then ours."""
        files = self.debian.fetch_source("qemu", f"1:{VERSION}")
        shutil.rmtree(self.source, ignore_errors=True)
        self.source.mkdir()
        for part, strip in ((".orig.tar.xz", 1), (".debian.tar.xz", 0)):
            [archive] = files.glob(f"*{part}")
            self._call("tar", "-x", "-f", archive, f"--strip-components={strip}", "-C", self.source)
        series = (self.source / "debian/patches/series").read_text().split("\n")
        theirs = [self.source / "debian/patches" / line for line in series if line and not line.startswith("#")]
        for patch in (*theirs, PATCH):
            self._call("patch", "--silent", "-p1", "-i", patch, cwd=self.source)
        for name, place in SOURCES.items():
            shutil.copy(PATCH.with_name(name), self.source / place / name)

    def configure(self) -> None:
        """Choose the few parts of QEMU that the lab needs."""
        shutil.rmtree(self.objects, ignore_errors=True)
        self.objects.mkdir()
        tools = [f"--{name}={self.bin / name}" for name in ("meson", "ninja")]
        command: list[str | Path] = [self.source / "configure", *FEATURES, *tools]
        self._call(*command, cwd=self.objects, log=self.work / "configure.log")

    def compile(self) -> None:
        """Compile; ninja itself goes on where it was killed."""
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        self._call("ninja", jobs, "qemu-system-x86_64", cwd=self.objects, log=self.work / "compile.log")

    def _keep(self, product: Path) -> None:
        unpack(self.debian.fetch("seabios", "qemu-system-data"), self.work / "firmware")
        with whole(product) as folder:
            self._call("strip", "-o", folder / "qemu-rdt", self.objects / "qemu-system-x86_64")
            (folder / "firmware").mkdir()
            for place, names in FIRMWARE.items():
                for name in names:
                    shutil.copy(self.work / "firmware" / place / name, folder / "firmware" / name)

    def _once(self, step: Callable[[], None], what: str) -> None:
        mark = self.work / f"{step.__name__}.done"
        if not mark.exists():
            self.say(what)
            step()
            mark.touch()

    def _wrap(self, name: str, command: str) -> None:
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{command}\n")
        file.chmod(0o755)

    def _call(self, *words: str | Path, cwd: Path | None = None, log: Path | None = None) -> None:
        own = self.libraries / MULTIARCH
        environment = {
            "PATH": os.pathsep.join([str(self.bin), str(self.libraries / "usr/bin"), os.environ["PATH"]]),
            "PKG_CONFIG_PATH": str(own / "pkgconfig"),
            "LIBRARY_PATH": str(own),
            "CPATH": str(self.libraries / "usr/include"),
        }
        call(words, cwd=cwd, environment=environment, log=log)
