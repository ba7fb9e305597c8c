"""Amounts as a study writes them (`all`, 4, 2-8, 25%, 6MiB; 20%, 2000 MB/s) -> what the machine can be given."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from castmates.study import masks
from castmates.study.cache import Bandwidth, Cache, rate_words
from castmates.study.cpus import format_cpu_list
from castmates.study.remarks import Remark
from castmates.study.written import bytes_of

ALL = "all"
RANGE = re.compile(r"(\d+)-(\d+)(?:/([1-9]\d*))?")
PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([MG]i?)B/s")
BYTES = {"M": 10**6, "G": 10**9, "Mi": 2**20, "Gi": 2**30}  # of a rate
UNIT_BYTES = {"MiB/s": 2**20, "1/8 GB/s": 125 * 10**6}  # of a throttle
MOST_IN_RANGE = 4096  # no machine has so many ways; a typing error should not fill the memory
TENTHS = range(10, 100, 10)  # per cent of a peak, where the machine has no steps of them
LONGEST = 30  # letters; a number that needs more is no amount
WAYS_EXPECTED = "ways such as 4 or 2-8, a size such as 25% or 6MiB, the word all, or a list of these"
RATES_EXPECTED = "a bandwidth such as 20% or 2000 MB/s, the word all, or a list of these"


def ways_text(value: object) -> str:
    """Check one amount of ways as it was written."""
    text = str(value).strip() if isinstance(value, str) or type(value) is int else ""
    if len(text) > LONGEST:
        raise ValueError(WAYS_EXPECTED)
    if text == ALL or text.isdecimal() or PERCENT.fullmatch(text):
        return text
    if span := RANGE.fullmatch(text):
        if not int(span[1]) <= int(span[2]) < MOST_IN_RANGE:
            raise ValueError(WAYS_EXPECTED)
        return text
    try:
        bytes_of(text)
    except ValueError:
        raise ValueError(WAYS_EXPECTED) from None
    return text


def rate_text(value: object) -> str:
    """Check one amount of bandwidth as it was written."""
    text = value.strip() if isinstance(value, str) else ""
    if text == ALL or (len(text) <= LONGEST and (PERCENT.fullmatch(text) or RATE.fullmatch(text))):
        return text
    raise ValueError(RATES_EXPECTED)


@dataclass
class Notes:
    """What a study asked for and does not get, or gets a little differently; each remark once."""

    remarks: dict[Remark, None] = field(default_factory=dict)

    def add(self, about: str, text: str, left_out: bool = False) -> None:
        """Add a remark, unless it is there already."""
        self.remarks.setdefault(Remark(about=about, text=text, left_out=left_out))


def ways_from(
    texts: Iterable[str], cache: Cache, possible: tuple[int, int], everything: Sequence[int], key: str, notes: Notes
) -> list[int]:
    """The numbers of ways that these amounts are, each once; what is not between the possible ones is left out."""
    least, most = possible
    can = f"from {least} to {most} ways can" if least < most else f"only {least} can" if least == most else "none can"
    written: dict[int, None] = {}
    numbers: dict[int, None] = {}
    for text in texts:
        if (counted := _counted(text, everything)) is not None:
            written |= dict.fromkeys(number for number in counted if not least <= number <= most)
            numbers |= dict.fromkeys(number for number in counted if least <= number <= most)
        elif (size := _size(text, cache, key, notes)) is not None:
            ways, exact = size
            if not least <= ways <= most:
                notes.add(key, f"{text} left out: it is {ways}, and {can} be given here.")
                continue
            if abs(ways - exact) > 1e-9:
                words = masks.size_words(masks.make(ways), cache)
                notes.add(key, f"{text} becomes {words}, the nearest that there is.")
            numbers.setdefault(ways)
    if written:
        notes.add(key, f"{format_cpu_list(written)} left out: {can} be given here.")
    return list(numbers)


def _counted(text: str, everything: Sequence[int]) -> Sequence[int] | None:
    """Ways that are written as numbers; None for a size."""
    if text == ALL:
        return everything
    if text.isdecimal():
        return [int(text)]
    if span := RANGE.fullmatch(text):
        return range(int(span[1]), int(span[2]) + 1, int(span[3] or 1))
    return None


def _size(text: str, cache: Cache, key: str, notes: Notes) -> tuple[int, float] | None:
    """The number of ways that comes nearest to a size, and what the size is in ways; None where it is not known."""
    if share := PERCENT.fullmatch(text):
        wanted = float(share[1]) / 100
        return masks.ways_of_share(wanted, cache), wanted * cache.ways
    try:
        return masks.ways_of_bytes(bytes_of(text), cache), bytes_of(text) / (cache.way_bytes or 1)
    except ValueError as problem:
        notes.add(key, f"{text} left out: {problem}.")
        return None


def rates_from(texts: Iterable[str], bandwidth: Bandwidth, key: str, notes: Notes) -> list[int]:
    """The throttles that these amounts are, in the machine's unit, each once.

    They are rounded up as the kernel does, and then to what the processor is known, or was measured, to make of them.
    """
    rates: dict[int, None] = {}
    for text in texts:
        for wanted in _rates(text, bandwidth, key, notes):
            rate = bandwidth.rounded(max(wanted, bandwidth.least))
            if rate > bandwidth.most:
                notes.add(key, f"{text} left out: the most here is {rate_words(bandwidth.most, bandwidth.unit)}.")
                continue
            if bandwidth.allowed is not None and rate >= bandwidth.allowed:
                notes.add(
                    key, f"{text} left out: programs have {rate_words(bandwidth.allowed, bandwidth.unit)} here anyway."
                )
                continue
            if rate != wanted:
                notes.add(key, f"{text} becomes {rate_words(rate, bandwidth.unit)}, the next that there is.")
            held = bandwidth.held(rate)
            asked, done = (rate_words(each, bandwidth.unit) for each in (rate, held))
            if held == bandwidth.most != rate:
                notes.add(key, f"{asked} left out: it was measured to slow nothing down on this machine.")
                continue
            if held != rate:
                notes.add(key, f"{asked} does what {done} does on this machine.")
            rates.setdefault(held)
    return list(rates)


def _rates(text: str, bandwidth: Bandwidth, key: str, notes: Notes) -> Sequence[float]:
    percent, rate = PERCENT.fullmatch(text), RATE.fullmatch(text)
    if bandwidth.unit == "%":
        if text == ALL:
            return range(bandwidth.rounded(bandwidth.least), bandwidth.most, bandwidth.step)  # the most is no throttle
        if percent:
            return [float(percent[1])]
        notes.add(
            key, f"{text} left out: this machine throttles bandwidth in steps whose rate is not known; write per cent."
        )
        return []
    unit = UNIT_BYTES[bandwidth.unit]
    if rate:
        return [float(rate[1]) * BYTES[rate[2]] / unit]
    if bandwidth.peak is None:
        notes.add(
            key,
            f"{text} left out: this machine throttles bandwidth in units of {bandwidth.unit}, and what per cent are of "
            "was not measured on all cores around a cache; write rates such as 2000 MB/s, or run "
            "`castmates doctor --memory-peak` first.",
        )
        return []
    rates = []
    for share in [float(percent[1])] if percent else TENTHS:
        rates.append(bandwidth.rounded(max(share / 100 * bandwidth.peak / unit, bandwidth.least)))
        notes.add(
            key,
            f"{share:g}% becomes {rate_words(rates[-1], bandwidth.unit)}: the cores around one cache read "
            f"{bandwidth.peak / 1e9:g} GB/s here.",
        )
    return rates
