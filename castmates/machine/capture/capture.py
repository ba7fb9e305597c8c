"""Writes a machine into one file, and opens such a file in place of a machine.

The file is compressed JSON: the names of kernel files and their texts. One that comes from a stranger is data: it is
read up to a limit, and refused whole where it holds anything that we would not have written.
"""

import gzip
import io
import json
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from castmates.errors import CastmatesError
from castmates.files import memory_folder, replace
from castmates.linux.kernel_files import read_kernel
from castmates.machine.capture.contents import captured_files, keeper_of
from castmates.machine.topology import Topology, read_topology

FORMAT = 1
MOST = 64 << 20  # bytes of a capture when it is not compressed: a machine of 1,000 CPUs has a fifth of that
COMMAND = "castmates doctor --capture"
IN_BUNDLE = "machine.json.gz"
BLOCK = 512  # bytes of a tar file
BEGIN = b'{\n"castmates capture":'  # of every capture, of this format or another


def record(file: Path, root: Path = Path("/"), found_out: Mapping[str, str] | None = None) -> int:
    """Write a machine, and what was found out by asking; return how many files. Equal machines give equal bytes."""
    refuse_other_files(file)
    files = captured(root)
    for name, answer in (found_out or {}).items():
        keep = keeper_of(name)
        if keep is not None and (kept := keep(answer)) is not None:
            files[name] = kept
    text = json.dumps({"castmates capture": FORMAT, "files": files}, sort_keys=True, indent=0)
    packed = gzip.compress(text.encode(), mtime=0)
    try:
        replace(file, lambda temporary: temporary.write_bytes(packed))
    except OSError as problem:
        raise CastmatesError(f"{file}: the capture cannot be written: {problem.strerror}.") from None
    return len(files)


def refuse_other_files(file: Path) -> None:
    """Refuse a name that something has which is no capture: devices, links, and files with what somebody still needs.

    A capture takes minutes and is written last, so this is also looked at before anything else.
    """
    try:
        is_plain = stat.S_ISREG(file.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as problem:
        raise CastmatesError(f"{file}: the capture cannot be written: {problem.strerror}.") from None
    if not is_plain or not _begins_like_a_capture(file):
        raise CastmatesError(f"{file} is there already, and is no capture of a machine: give a name that is free.")


def _begins_like_a_capture(file: Path) -> bool:
    try:
        with gzip.open(file) as packed:
            return packed.read(len(BEGIN)) == BEGIN
    except (OSError, EOFError, zlib.error):
        return False


def captured(root: Path) -> dict[str, str]:
    """Return what a capture of the machine holds: names of files, and what is kept of their texts."""
    files = {}
    for name, path, keep in captured_files(root):
        try:
            kept = keep(read_kernel(path).decode(errors="replace"))
        except OSError:  # not for this user, or a setting that this processor lacks
            continue
        # A name that is not ours, such as one of a driver that is not known to follow the kernel's ways.
        if kept is not None and _is_known(name, kept):
            files[name] = kept
    return files


@contextmanager
def opened(file: Path) -> Iterator[Path]:
    """Lay a capture out in a temporary folder, which readers take in place of the root of a machine."""
    files = read_files(file)
    with TemporaryDirectory(prefix="castmates-capture-", dir=memory_folder()) as folder:
        root = Path(folder)
        for name, text in files.items():
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        yield root


def read_files(file: Path) -> dict[str, str]:
    """Return the names and texts of a capture; what is no capture is an error in one sentence."""
    try:
        text = _unpacked(file)
        if len(text) > MOST:
            raise CastmatesError(f"{file}: this is no capture of a machine: it unpacks to more than {MOST >> 20} MiB.")
        content = json.loads(text)
    except FileNotFoundError:
        raise CastmatesError(f"{file}: there is no such file; `{COMMAND} {file}` makes one.") from None
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as problem:
        raise CastmatesError(f"{file}: this is no capture of a machine: {_first_line(problem)}.") from None
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, dict) or content.get("castmates capture") != FORMAT:
        raise CastmatesError(f"{file}: this is no capture of a machine in format {FORMAT}; make one with `{COMMAND}`.")
    for name, kept in files.items():
        if not isinstance(kept, str) or not _is_known(name, kept):
            raise CastmatesError(
                f"{file}: this is no capture of a machine: it holds {name[:100]!r} with a text that `{COMMAND}` does "
                "not write."
            )
    return files


def _unpacked(file: Path) -> bytes:
    """Return the text of a capture, or of the one in a bundle, no more than a byte beyond the limit."""
    with gzip.open(file) as packed:
        if packed.read(BLOCK)[257:262] != b"ustar":
            packed.seek(0)
            return packed.read(MOST + 1)
    inside = in_bundle(file, IN_BUNDLE)
    if inside is None:
        raise ValueError(f"there is no {IN_BUNDLE} in this bundle")
    with gzip.open(io.BytesIO(inside)) as packed:
        return packed.read(MOST + 1)


def in_bundle(file: Path, name: str) -> bytes | None:
    """Return a file of a bundle, at its top or in its one folder; None where it has none.

    A bundle is an archive of a capture and of what was measured on the machine.
    """
    with gzip.open(file) as bundle:  # blocks of a tar file: a head, then the content
        while len(head := bundle.read(BLOCK)) == BLOCK and any(head):
            path, size = PurePosixPath(head[:100].split(b"\0")[0].decode()), int(head[124:136].strip(b" \0"), 8)
            whole = -(-size // BLOCK) * BLOCK
            if bundle.tell() + whole > MOST:
                raise ValueError(f"it unpacks to more than {MOST >> 20} MiB")
            content = bundle.read(whole)[:size]
            if path.name == name and len(path.parts) <= 2:
                return content
    return None


def read_captured_topology(file: Path) -> Topology:
    """Return the topology of a captured machine."""
    with opened(file) as root:
        return topology_of(root, file)


def topology_of(root: Path, file: Path) -> Topology:
    """Read the topology of an opened capture; one without processors is an error."""
    try:
        topology = read_topology(root)
    except CastmatesError as problem:
        raise CastmatesError(f"{file}: this capture contradicts itself: {problem}") from None
    if not topology.cpus:
        raise CastmatesError(f"{file}: this capture holds no processors; make one with `{COMMAND}`.")
    return topology


def _is_known(name: str, text: str) -> bool:
    """Check whether a capture has a file of this name, and keeps all of this text."""
    keep = keeper_of(name)
    return keep is not None and keep(text) == text


def _first_line(problem: BaseException) -> str:
    return str(getattr(problem, "strerror", None) or problem).partition("\n")[0]
