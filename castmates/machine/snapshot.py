"""Records what the topology reader reads into one small archive, and reads it in place of a machine."""

import gzip
import io
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from castmates.errors import CastmatesError
from castmates.files import replace
from castmates.linux.kernel_files import read_text
from castmates.machine.topology import Topology, read_topology

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
PATTERNS = (
    f"{CPU}/online",
    f"{CPU}/isolated",
    f"{CPU}/nohz_full",
    f"{CPU}/cpu[0-9]*/online",
    f"{CPU}/cpu[0-9]*/cpu_capacity",
    *(f"{CPU}/cpu[0-9]*/topology/{name}" for name in ("core_cpus_list", "thread_siblings_list", "physical_package_id")),
    *(
        f"{CPU}/cpu[0-9]*/cache/index[0-9]*/{name}"
        for name in ("id", "level", "type", "size", "ways_of_associativity", "shared_cpu_list")
    ),
    *(f"{NODE}/node[0-9]*/{name}" for name in ("cpulist", "distance", "meminfo")),
    *(f"sys/devices/{device}/cpus" for device in ("cpu_core", "cpu_atom", "cpu_lowpower")),
    "proc/self/status",
)
KNOWN = re.compile("|".join(pattern.replace("[0-9]*", r"\d+") for pattern in PATTERNS), re.ASCII)
# Of files that show much else, some of it true only for a moment, these lines are kept.
LINES = {"meminfo": r"Node \d+ MemTotal:.*", "status": r"(?:Cpus|Mems)_allowed_list:.*"}
LONGEST = 64 * 1024  # bytes of one file


def record(file: Path, root: Path = Path("/")) -> None:
    """Write what the topology reader reads below `root`; equal machines give equal bytes, which name no host."""
    try:
        replace(file, lambda temporary: temporary.write_bytes(_pack(root)))
    except OSError as problem:
        raise CastmatesError(f"{file}: the snapshot cannot be written: {problem.strerror}.") from None


def read_snapshot(file: Path) -> Topology:
    """Return the topology of a recorded machine."""
    with TemporaryDirectory(prefix="castmates-snapshot-", dir=memory()) as folder:
        root = Path(folder)
        try:
            for name, text in _unpack(file):
                place = root / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text)
        except FileNotFoundError:
            raise CastmatesError(
                f"{file}: there is no such snapshot; `castmates doctor --snapshot` makes one."
            ) from None
        except (OSError, EOFError, tarfile.TarError, zlib.error) as problem:
            raise CastmatesError(f"{file}: this is no snapshot of a machine: {problem}.") from None
        topology = read_topology(root)
    if not topology.cpus:
        raise CastmatesError(f"{file}: this snapshot holds no processors; make one with `castmates doctor --snapshot`.")
    return topology


def memory() -> str | None:
    """Return where thousands of short-lived small files belong, if this machine has a place for them."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _pack(root: Path) -> bytes:
    packed = io.BytesIO()
    names = sorted({str(path.relative_to(root)) for pattern in PATTERNS for path in root.glob(pattern)})
    with (
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in names:
            text = _kept(root / name)
            if text is not None:
                entry = tarfile.TarInfo(name)  # with no owner and no time
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


def _kept(path: Path) -> bytes | None:
    text = read_text(path)
    if text is not None and path.name in LINES:
        text = "\n".join(re.findall(f"^{LINES[path.name]}$", text, re.MULTILINE))
    return None if text is None else f"{text}\n".encode()


def _unpack(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files that a snapshot may hold, and nothing else."""
    with tarfile.open(file, mode="r:gz") as archive:
        for entry in archive:
            if not (entry.isreg() and KNOWN.fullmatch(entry.name) and entry.size <= LONGEST):
                raise tarfile.TarError(f"it holds {entry.name!r}")
            content = archive.extractfile(entry)
            yield entry.name, content.read() if content else b""
