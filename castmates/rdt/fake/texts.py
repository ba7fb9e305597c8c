"""The kernel's own ways of reading and writing numbers and sets of CPUs, errno by errno."""

import errno
import os
import re
import string
from collections.abc import Iterable

BLANKS = " \t\n\v\f\r"
_DIGITS = {8: string.octdigits, 10: string.digits, 16: string.hexdigits}


def refusal(number: int) -> OSError:
    """Return what a system call fails with."""
    return OSError(number, os.strerror(number))


def c_string(data: bytes) -> str:
    """Read what was written up to its first NUL."""
    return data.decode("utf-8", "surrogateescape").split("\0", 1)[0]


def strip(text: str) -> str:
    """Take blanks off both ends: strim()."""
    return text.strip(BLANKS)


def unsigned(text: str, base: int, bits: int = 64) -> int:
    """Read a number as kstrtoul and its like do; base 0 takes it from the prefix."""
    number = _magnitude(text.removeprefix("+"), base)
    if number >> bits:
        raise refusal(errno.ERANGE)
    return number


def signed(text: str, base: int, bits: int = 32) -> int:
    """Read a number as kstrtoint does."""
    minus = text.startswith("-")
    number = _magnitude(text[1:] if minus else text.removeprefix("+"), base)
    if number > (1 << bits - 1) - (not minus):
        raise refusal(errno.ERANGE)
    return -number if minus else number


def _magnitude(text: str, base: int) -> int:
    hexadecimal = text[:2] in ("0x", "0X")
    if base == 0:
        base = 10 if not text.startswith("0") else 16 if hexadecimal and text[2:3] in string.hexdigits else 8
    if base == 16 and hexadecimal:
        text = text[2:]
    digits = re.match(f"[{_DIGITS[base]}]*", text)
    assert digits is not None
    if not digits[0]:
        raise refusal(errno.EINVAL)
    if int(digits[0], base) >> 64:
        raise refusal(errno.ERANGE)
    if text[digits.end() :] not in ("", "\n"):
        raise refusal(errno.EINVAL)
    return int(digits[0], base)


_NUMBER = r"(N|\d+)"
_REGION = re.compile(rf"(?:(?i:all)|{_NUMBER}-{_NUMBER})(?::{_NUMBER}/{_NUMBER})?|{_NUMBER}(?=[{BLANKS},]|$)", re.ASCII)


def parse_cpu_list(text: str, possible: int) -> frozenset[int]:
    """Read "0-3,8", with the steps ("0-7:1/2") and words ("all", "N") that the kernel knows too."""
    cpus: set[int] = set()
    position = 0
    while True:
        while text[position : position + 1] and text[position] in BLANKS + ",":
            position += 1
        if position == len(text):
            return frozenset(cpus)
        region = _REGION.match(text, position)
        if region is None:
            raise refusal(errno.EINVAL)
        cpus |= _region(region, possible)
        position = region.end()
        follows = text[position : position + 1]
        if not follows or follows == "\n":
            return frozenset(cpus)
        if follows not in BLANKS + ",":
            raise refusal(errno.EINVAL)


def _region(region: re.Match[str], possible: int) -> set[int]:
    first, last, used, step, single = (None if text is None else _cpu(text, possible) for text in region.groups())
    if single is not None:
        first = last = single
    first, last = (0 if first is None else first), (possible - 1 if last is None else last)
    used, step = (last + 1 if used is None else used), (last + 1 if step is None else step)
    if first > last or step == 0 or used > step:
        raise refusal(errno.EINVAL)
    if last >= possible:
        raise refusal(errno.ERANGE)
    return {cpu for start in range(first, last + 1, step) for cpu in range(start, min(start + used, last + 1))}


def _cpu(text: str, possible: int) -> int:
    if text == "N":
        return possible - 1
    if int(text) >> 32:
        raise refusal(errno.EOVERFLOW)
    return int(text)


def parse_cpu_mask(text: str, possible: int) -> frozenset[int]:
    """Read "ff,00000003": groups of 32 bits in hex, the highest first."""
    bits = 0
    words = [word for word in re.split(f"[{BLANKS},]+", text.split("\n", 1)[0]) if word]
    for place, word in enumerate(reversed(words)):
        if 32 * place >= possible:
            raise refusal(errno.EOVERFLOW)
        tail = word[-8:]
        if not set(tail) <= set(string.hexdigits):
            raise refusal(errno.EINVAL)
        if len(word) > 8 and word[-9] in string.hexdigits:
            raise refusal(errno.EOVERFLOW)
        if len(word) > 8:
            raise refusal(errno.EINVAL)
        bits |= int(tail, 16) << 32 * place
    if bits >> possible:
        raise refusal(errno.EOVERFLOW)
    return frozenset(cpu for cpu in range(possible) if bits >> cpu & 1)


def show_cpu_list(cpus: Iterable[int]) -> str:
    """Write CPUs as "0-3,8"."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(str(cpu) for cpu in run) for run in runs)


def show_cpu_mask(cpus: Iterable[int], possible: int) -> str:
    """Write CPUs in groups of 32 bits, as wide as all possible CPUs need."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = []
    for low in range(0, possible, 32):
        width = (min(32, possible - low) + 3) // 4
        words.append(f"{bits >> low & 0xFFFFFFFF:0{width}x}")
    return ",".join(reversed(words))
