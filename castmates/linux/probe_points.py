"""Where in a file a probe is set: the place of a function or of a USDT probe, read from its ELF tables."""

import ctypes
import errno
import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from castmates.linux.perf_event import EXCLUDE_HV, EXCLUDE_KERNEL, HARDWARE, PERF_DEVICES, Attr, Target, open_event

INSTRUCTIONS = 1  # the number of that event
_SYMBOLS, _DYNAMIC, _NOTES, _NO_BITS, _LOAD = 2, 11, 7, 8, 1  # types of sections, and of a segment
_FUNCTION, _INDIRECT = 2, 10  # types of symbols
NO_UPROBES = "this kernel has no uprobes, by which calls are counted"
_STAPSDT = 3  # the type of a note that has a USDT probe


class NoPlace(ValueError):
    """There is nothing of that name to set a probe on; the message is one sentence for the user."""


class Place(NamedTuple):
    """An instruction in a file, and the semaphore (0: none) without which a program leaves a USDT probe out."""

    file: Path
    offset: int
    counter: int = 0

    @property
    def words(self) -> str:
        """As `count --calls` takes it, after the type of the kernel's device."""
        return ",".join([hex(self.offset), *([hex(self.counter)] if self.counter else []), str(self.file)])


class _Section(NamedTuple):
    name: int
    kind: int
    address: int
    offset: int
    size: int
    link: int


def device_type(root: Path = Path("/")) -> int | None:
    """Return the type of the kernel's uprobe device; None where it has none."""
    with suppress(OSError, ValueError):
        return int((root / PERF_DEVICES / "uprobe" / "type").read_text())
    return None


def find(calls: str, path: str) -> list[Place]:
    """Find what `calls` names: each function of this name, a USDT probe at each of its places.

    Programs are looked for in `path`, then shared libraries where the linker looks.
    """
    program, _, what = calls.partition(":")
    file = _file_of(program, path)
    if file is None:
        raise NoPlace(f"'calls: {calls}': there is no program or shared library '{program}' here.")
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _place(calls, what, file, data)
    except NoPlace:
        raise
    except (OSError, ValueError, IndexError, struct.error) as problem:
        raise NoPlace(f"'calls: {calls}': {file} cannot be read as an ELF file ({problem}).") from None


def refusal(places: Sequence[Place]) -> str:
    """Return why calls at these places cannot be counted here; "" where they can, which is tried."""
    if (kind := device_type()) is None:
        return NO_UPROBES
    for place in places:
        name = ctypes.create_string_buffer(os.fsencode(place.file))
        attr = Attr(kind, place.counter << 32, ctypes.addressof(name), place.offset)
        if why := _tried(attr, Target(-1, min(os.sched_getaffinity(0)))):
            return f"the kernel counts no calls for this user ({why})"
    return ""


def refusal_of_calls() -> str:
    """Return why no calls can be counted here; "" where they can, which is tried at the first instruction of Python."""
    program = Path("/proc/self/exe").resolve()
    try:
        with program.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            (entry,) = struct.unpack_from("<Q", data, 24)
            place = Place(program, _offset(data, entry))
    except (OSError, ValueError, struct.error) as problem:
        return f"{program} cannot be read as an ELF file ({problem})"
    return refusal([place])


def refusal_of_instructions() -> str:
    """Return why instructions in user mode cannot be counted here; "" where they can, which is tried."""
    if why := _tried(Attr(HARDWARE, INSTRUCTIONS, exclude=EXCLUDE_KERNEL | EXCLUDE_HV), Target(0)):
        return f"the processor counts no instructions here ({why})"
    return ""


def _tried(attr: Attr, target: Target) -> str:
    try:
        os.close(open_event(attr, target))
    except OSError as problem:
        absent = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP)
        return "it has no such counter; a virtual machine often has none" if problem.errno in absent else str(problem)
    return ""


def _file_of(program: str, path: str) -> Path | None:
    found = program if "/" in program else shutil.which(program, path=path) or _library(program)
    return Path(found).resolve() if found and Path(found).is_file() else None


def _library(name: str) -> str | None:
    """Ask the linker's cache."""
    tool = shutil.which("ldconfig", path=os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"]))
    if tool is None:
        return None
    with suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run([tool, "-p"], capture_output=True, text=True, timeout=10, check=False).stdout
        lines = (line.split() for line in said.splitlines()[1:])
        return next((words[-1] for words in lines if words and words[0] == name), None)
    return None


def _place(calls: str, what: str, file: Path, data: mmap.mmap) -> list[Place]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise NoPlace(f"'calls: {calls}': {file} is no ELF program of 64 bits; name the program that it starts.")
    sections = list(_sections(data))
    provider, colon, name = what.partition(":")
    if colon:
        probes = list(_probes(data, sections))
        if (found := [place for probe, *place in probes if probe == (provider, name)]) == []:
            known = sorted({":".join(probe) for probe, *_ in probes})
            raise NoPlace(f"'calls: {calls}': {file} has no USDT probe '{what}'{_known(what, known)}.")
        return [Place(file, _offset(data, address), counter and _offset(data, counter)) for address, counter in found]
    functions = set(_functions(data, sections))
    named = sorted((address, kind) for name, address, kind in functions if name == what)
    if not named:
        why = "it has no symbols: it was stripped" if not functions else f"it has no function '{what}'"
        more = "" if not functions else _known(what, sorted({name for name, *_ in functions}))
        raise NoPlace(f"'calls: {calls}': {why}{more} ({file}).")
    if any(kind == _INDIRECT for _, kind in named):
        raise NoPlace(
            f"'calls: {calls}': '{what}' is chosen among several functions when the program starts (IFUNC); name "
            "the one that is chosen, or one that calls it."
        )
    return [Place(file, _offset(data, address)) for address, _ in named]


def _known(what: str, names: list[str]) -> str:
    if not names:
        return "; it has none"
    near = get_close_matches(what, names, 3) or names[:3]
    return f"; of the {len(names)} that it has: {', '.join(near)}"


def _sections(data: mmap.mmap) -> Iterator[_Section]:
    (table,), (size, count) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<HH", data, 58)
    for one in range(count):
        name, kind, _, address, offset, length, link = struct.unpack_from("<IIQQQQI", data, table + one * size)
        yield _Section(name, kind, address, offset, length, link)


def _offset(data: mmap.mmap, address: int) -> int:
    """Where in the file an address lies."""
    (table,), (size, count) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    for one in range(count):
        kind, _, offset, begin, _, in_file = struct.unpack_from("<IIQQQQ", data, table + one * size)
        if kind == _LOAD and begin <= address < begin + in_file:
            return int(offset + address - begin)
    raise ValueError(f"address {address:#x} is in no segment")


def _functions(data: mmap.mmap, sections: list[_Section]) -> Iterator[tuple[str, int, int]]:
    """Yield all functions that the file defines: name, address and type.

    Static functions of several sources, and versions of one symbol, have the same name.
    """
    for section in (one for one in sections if one.kind in (_SYMBOLS, _DYNAMIC)):
        texts = sections[section.link]
        for place in range(section.offset, section.offset + section.size, 24):
            name, info, _, of_section, address, _ = struct.unpack_from("<IBBHQQ", data, place)
            if info & 15 in (_FUNCTION, _INDIRECT) and of_section and address:
                yield _text(data, texts.offset + name), address, info & 15


def _probes(data: mmap.mmap, sections: list[_Section]) -> Iterator[tuple[tuple[str, str], int, int]]:
    """Yield the USDT probes: provider and name, the address of a place, and that of the semaphore."""
    names = sections[struct.unpack_from("<H", data, 62)[0]]
    by_name: Mapping[str, _Section] = {_text(data, names.offset + one.name): one for one in sections}
    notes, base = by_name.get(".note.stapsdt"), by_name.get(".stapsdt.base")
    if notes is None or notes.kind != _NOTES:
        return
    place = notes.offset
    while place < notes.offset + notes.size:
        name_size, size, kind = struct.unpack_from("<III", data, place)
        content = place + 12 + (name_size + 3) // 4 * 4
        if kind == _STAPSDT:
            address, linked_base, counter = struct.unpack_from("<QQQ", data, content)
            moved = base.address - linked_base if base is not None else 0  # by prelink
            provider = _text(data, content + 24)
            name = _text(data, content + 24 + len(provider) + 1)
            yield (provider, name), address + moved, counter and counter + moved
        place = content + (size + 3) // 4 * 4


def _text(data: mmap.mmap, place: int) -> str:
    return data[place : data.find(b"\0", place)].decode(errors="replace")
