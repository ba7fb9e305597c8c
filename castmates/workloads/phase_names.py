"""The names in a phases file: the workload's end (standard library only, Python 3.10 on)."""

import mmap
import struct
import sys
import threading
from collections.abc import Hashable

from castmates.workloads.phase_file import (
    DOMAIN_BYTES,
    DOMAIN_SLOT,
    DOMAIN_TABLE,
    DOMAINS_AT,
    HEADER,
    MOST_DOMAINS,
    MOST_NAMES,
    NAME_BYTES,
    NAME_SLOT,
    NAME_TABLE,
    NAMES_AT,
    OTHER_THREADS,
    PHASE,
    PLACE,
    text_at,
)

AT_TOP, IN_OTHERS, NAMELESS = -1, -2, -3  # where a phase may lie that lies in no phase of the table
_TOPS = -4  # where the outermost phases of the second domain lie; of further ones below it
_SLOT = struct.Struct(f"{PLACE.format}{NAME_SLOT - PLACE.size}s")


class NameTable:
    """Puts names and domains into the file as they are first used."""

    def __init__(self, memory: mmap.mmap, lock: threading.Lock) -> None:
        self._memory, self._lock = memory, lock
        self._halves = memoryview(memory).cast("I")
        *_, names, domains, _ = HEADER.unpack_from(memory)
        slots = [DOMAIN_TABLE + DOMAIN_SLOT * number for number in range(max(domains, 1))]
        self._domains = {text_at(memory, slot, DOMAIN_BYTES): number for number, slot in enumerate(slots)}
        self._paths: list[str] = []
        self._domain_of: list[int] = []  # of each name
        self.numbers: dict[Hashable, int] = {}  # of a phase by the one around it and its name
        self._complained: set[str] = set()
        self._take_over(names)

    def phase(self, outer: int, name: str) -> int:
        """The number of a phase in the table of names, where it is put if it can be."""
        if outer == NAMELESS:
            return NAMELESS
        domain = _TOPS - outer if outer <= _TOPS else self._domain_of[outer] if outer >= 0 else 0
        return self._numbered((outer, name), PHASE, domain, outer, name)

    def other(self, type_: int, domain: str, name: str, outer: int = AT_TOP) -> int:
        """The number of a name that is none of a phase, in the table of names, where it is put if it can be."""
        number = self._domain(domain)
        if number is None:
            return NAMELESS
        key = (type_, number, outer, name)
        known = self.numbers.get(key)
        return self._numbered(key, type_, number, outer, name) if known is None else known

    def top_of(self, domain: str) -> int:
        """Where the outermost phases of a domain that has a name lie."""
        number = self._domain(domain)
        return NAMELESS if number is None else _TOPS - number

    def complain(self, what: str, sentence: str) -> None:
        """Print a sentence, once for each kind of trouble."""
        if what not in self._complained:
            self._complained.add(what)
            print(f"{sentence} (docs/phases.md).", file=sys.stderr)

    def _numbered(self, key: Hashable, type_: int, domain: int, outer: int, name: str) -> int:
        with self._lock:
            if key not in self.numbers:
                if complaint := self._complaint(type_, outer, name):
                    self.complain("name", f"{complaint}; it is not recorded")
                    self.numbers[key] = NAMELESS
                else:
                    number, path = len(self._paths), self._path(outer, name)
                    _SLOT.pack_into(self._memory, NAME_TABLE + NAME_SLOT * number, domain, type_, path.encode())
                    self._paths.append(path)
                    self._domain_of.append(domain)
                    self.numbers[key] = number
                    self._halves[NAMES_AT] = number + 1
            return self.numbers[key]

    def _take_over(self, names: int) -> None:
        """Know the names that another process has put into the table."""
        phases: dict[tuple[int, str], int] = {}
        for number in range(names):
            slot = NAME_TABLE + NAME_SLOT * number
            domain, type_ = PLACE.unpack_from(self._memory, slot)
            path = text_at(self._memory, slot + PLACE.size, NAME_BYTES)
            around, _, name = path.rpartition("/")
            top = AT_TOP if type_ != PHASE or not domain else _TOPS - domain
            others = IN_OTHERS if domain == 0 and around == OTHER_THREADS else NAMELESS
            outer = phases.get((domain, around), others) if around else top
            if type_ == PHASE:
                phases[domain, path] = number
            self.numbers[(outer, name) if type_ == PHASE else (type_, domain, outer, name)] = number
            self._paths.append(path)
            self._domain_of.append(domain)

    def _path(self, outer: int, name: str) -> str:
        around = OTHER_THREADS if outer == IN_OTHERS else "" if outer < 0 else self._paths[outer]
        return f"{around}/{name}" if around else name

    def _complaint(self, type_: int, outer: int, name: str) -> str:
        if not isinstance(name, str) or not name or "/" in name or "\0" in name or not name.isprintable():
            return f"A phase needs a name, printable and without a slash, and {name!r} is none"
        if type_ == PHASE and outer == AT_TOP and name == OTHER_THREADS:
            return f"'{OTHER_THREADS}' is kept for the phases of other threads and is no name of a phase"
        if len(self._path(outer, name).encode()) > NAME_BYTES:
            return f"The phase '{self._path(outer, name)}' has a name of more than {NAME_BYTES} bytes"
        if len(self._paths) >= MOST_NAMES:
            return f"There are {MOST_NAMES} phases already, and '{self._path(outer, name)}' is one more"
        return ""

    def _domain(self, domain: str) -> int | None:
        """The number of a domain in the table, where it is put if it can be."""
        known = self._domains.get(domain)
        if known is not None:
            return known
        with self._lock:
            if domain in self._domains:
                return self._domains[domain]
            if not isinstance(domain, str) or not domain.isprintable() or len(domain.encode()) > DOMAIN_BYTES:
                self.complain("domain", f"A domain needs a printable name of at most {DOMAIN_BYTES} bytes, and "
                               f"{domain!r} is none; what it has is not recorded")  # fmt: skip
                return None
            number = len(self._domains)
            if number >= MOST_DOMAINS:
                self.complain("domains", f"There are {MOST_DOMAINS} domains already, and '{domain}' is one more; "
                               "what it has is not recorded")  # fmt: skip
                return None
            at = DOMAIN_TABLE + DOMAIN_SLOT * number
            self._memory[at : at + DOMAIN_SLOT] = domain.encode().ljust(DOMAIN_SLOT, b"\0")
            self._domains[domain] = number
            self._halves[DOMAINS_AT] = number + 1
            return number
