"""Debian's kernels, unmodified, each with an initial file system that mounts this machine's / and runs one command."""

import gzip
import lzma
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_IFDIR, S_IFREG

from tests.lab.kit.common import NoLab, Say, whole
from tests.lab.kit.debian import Debian, numbers, unpack

INIT = Path(__file__).parent / "init.sh"
# Mirrors drop old versions: these are preferred, the newest of the same series will do.
PREFERRED = {"6.1": "6.1.0-50-amd64", "6.12": "6.12.95+deb12-amd64", "7.2": "7.2.12+deb13-amd64"}
PATTERN = {
    "6.1": r"6\.1\.\d+-\d+-amd64",
    "6.12": r"6\.12\.\d+\+\w+-amd64",
    "7.2": r"7\.2\.\d+\+\w+-amd64",
}
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "msr")  # and those that they need
PARTS = ("binary", "modules")  # packages of kernels that come in several
MODULES_IN = ("lib/modules", "usr/lib/modules")
FOLDERS = ("bin", "dev", "proc", "sys", "modules", "lower", "upper", "root")


def build(series: str, debian: Debian, product: Path, say: Say) -> None:
    """Leave a kernel of this series, its initial file system and its version in `product`."""
    version = choose(series, debian.names(f"linux-image-{series}."))
    say(f"Linux {version}")
    work = product.with_name(f"{product.name}.work")
    shutil.rmtree(work, ignore_errors=True)
    # Newer packages of an image hold nothing: the kernel and its modules have packages of their own.
    apart = [name for part in PARTS for name in debian.names(f"linux-{part}-{version}")]
    wanted = [name for name in apart if name.endswith(version)] or [f"linux-image-{version}"]
    unpack(debian.fetch(*wanted, "busybox-static"), work)
    with whole(product) as folder:
        modules = next(work / place for place in MODULES_IN if (work / place / version).is_dir()) / version
        image = next(file for file in (work / f"boot/vmlinuz-{version}", modules / "vmlinuz") if file.exists())
        shutil.copy(image, folder / "vmlinuz")
        files = initial_files(work / "bin/busybox", modules)
        (folder / "initrd.gz").write_bytes(gzip.compress(cpio(files), 6, mtime=0))
        (folder / "version").write_text(version)
    shutil.rmtree(work)


def choose(series: str, packages: Iterable[str]) -> str:
    """Choose a version among the packages of kernels: the preferred one, else the newest."""
    found = [name.removeprefix("linux-image-") for name in packages]
    found = [version for version in found if re.fullmatch(PATTERN[series], version)]
    if not found:
        raise NoLab(f"the mirror of this machine has no Linux {series}")
    return PREFERRED[series] if PREFERRED[series] in found else max(found, key=numbers)


def initial_files(busybox: Path, modules: Path) -> Iterator[tuple[str, int, bytes]]:
    """Name the files of an initial file system with their modes and contents."""
    for folder in FOLDERS:
        yield folder, S_IFDIR | 0o755, b""
    yield "init", S_IFREG | 0o755, INIT.read_bytes()
    yield "bin/busybox", S_IFREG | 0o755, busybox.read_bytes()
    for number, (name, content) in enumerate(with_needs(modules)):
        yield f"modules/{number:02}-{name}.ko", S_IFREG | 0o644, content


def with_needs(folder: Path) -> list[tuple[str, bytes]]:
    """Return the modules and those that they need, in the order in which they are to be loaded."""
    files = {re.split(r"\.ko", file.name)[0].replace("-", "_"): file for file in folder.rglob("*.ko*")}
    loaded: dict[str, bytes] = {}

    def load(name: str) -> None:
        if name in loaded or name not in files:  # what is in no file is part of the kernel
            return
        content = files[name].read_bytes()
        if files[name].suffix == ".xz":
            content = lzma.decompress(content)
        needs = re.search(rb"(?:^|\0)depends=([^\0]*)\0", content)
        for need in needs[1].decode().split(",") if needs else ():
            load(need.replace("-", "_"))
        loaded[name] = content

    for name in MODULES:
        load(name)
    return list(loaded.items())


def cpio(files: Iterable[tuple[str, int, bytes]]) -> bytes:
    """Pack files as the kernel wants its initial file system: the "newc" format of cpio."""
    parts = []
    for inode, (name, mode, content) in enumerate([*files, ("TRAILER!!!", 0, b"")], start=1):
        path = name.encode() + b"\0"
        # inode, mode, user, group, links, time, size, device (2), special device (2), length of the name, checksum
        fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        head = b"070701" + b"".join(b"%08X" % number for number in fields) + path
        parts += [head, bytes(-len(head) % 4), content, bytes(-len(content) % 4)]
    return b"".join(parts)
