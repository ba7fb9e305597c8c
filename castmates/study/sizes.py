"""Where a size or a rate cannot do on a machine what its workload is named for: rules, and a sentence of each.

A working set that streams through memory on one machine stays in the cache of another. Nothing is refused: the plan and
the page show the sentences.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from castmates.study.last_level import ASSUMED, NATIVE, LastLevel
from castmates.study.memory_peak import Peak
from castmates.study.spec import Member

STREAMS = frozenset({"stream", "bandwidth", "stencil", "gather", "spmv", "hashjoin", "mix"})  # named for memory
HOLDS = frozenset({"chase", "tree"})  # named for cache capacity
LARGER = 2  # times the cache, that a set must be to go through it
HELD = 0.25  # of the cache, that a set must be to be felt in it
USUAL_NEIGHBOUR = 10e9  # bytes per second of one core, where that was not measured
BUSY = 0.5  # of the peak, from which on memory is busy
FELT = 0.05  # of the peak, below which a rate is hardly felt
LINE = 64
_LETTERS = {"K": 1, "M": 2, "G": 3}


@dataclass(frozen=True)
class Asked:
    """What a member's command asks for on this machine; None where it asks for nothing of the kind."""

    workload: str
    kernel: str
    cores: int
    bytes: int | None
    rate: float | None  # bytes per second
    mode: str
    saturates: bool  # it is to take all of a package's memory bandwidth
    cache: LastLevel | None
    peak: Peak | None

    @property
    def antagonist(self) -> float:
        """What one core that streams beside it reads in a second."""
        return self.peak.reached(1) if self.peak else USUAL_NEIGHBOUR


def cautions(
    members: Iterable[Member],
    cache_of: Callable[[Sequence[int]], LastLevel | None],
    peak: Peak | None,
    saturating: Collection[str] = (),
) -> tuple[str, ...]:
    """The sentences of all rules that a member breaks, each once.

    `saturating` has the workloads that are to take all of a package's memory bandwidth.
    """
    asked = [
        asked_of(member, cache_of(member.cpus), peak, member.workload in saturating)
        for member in members
        if member.environment == NATIVE and member.command and member.role == "antagonist"  # a lead is felt by nobody
    ]
    broken = [sentence for each in asked for rule in RULES if (sentence := rule(each))]
    if any(each.cache is None for each in asked):
        broken.append(
            f"The kernel does not show how large the last-level cache is: sizes are shares of {_size(ASSUMED.bytes)}, "
            "which was assumed."
        )
    return tuple(dict.fromkeys(broken))


def asked_of(member: Member, cache: LastLevel | None, peak: Peak | None, saturates: bool = False) -> Asked:
    """What a member's command asks for."""
    options = dict(zip(member.command, member.command[1:], strict=False))
    sizes = [options.get("--bytes", ""), *_large_parts(member.command)]
    known = [size for text in sizes if (size := _bytes(text)) is not None]
    return Asked(
        workload=member.workload,
        kernel=member.command[0],
        cores=len(member.cpus),
        bytes=max(known, default=None),
        rate=_rate(options.get("--rate", ""), member.command[0]),
        mode=options.get("--mode", "triad"),
        saturates=saturates,
        cache=cache,
        peak=peak,
    )


def stays_in_cache(asked: Asked) -> str:
    """A set that is to go through memory must not fit into the cache."""
    if asked.kernel not in STREAMS or asked.bytes is None or asked.cache is None:
        return ""
    if asked.bytes >= LARGER * asked.cache.total:
        return ""
    mix = asked.kernel == "mix"
    which = "largest set" if mix else "working set"
    then = (
        "It misses less often than what it is like."
        if mix
        else "Give it four times the cache (`bytes: 4llc`), which is more than stays there."
    )
    return (
        f"{asked.workload}: its {which} of {_size(asked.bytes)} is {100 * asked.bytes / asked.cache.total:.2g} % of "
        f"the {_size(asked.cache.total)} of last-level cache that it can use. Much of it stays there, so memory is "
        f"hardly used. {then}"
    )


def is_not_felt_in_cache(asked: Asked) -> str:
    """A set that is to take cache capacity must be a good part of the cache."""
    if asked.kernel not in HOLDS or asked.bytes is None or asked.cache is None:
        return ""
    if asked.bytes >= HELD * asked.cache.total:
        return ""
    return (
        f"{asked.workload}: its working set of {_size(asked.bytes)} takes {100 * asked.bytes / asked.cache.total:.2g} "
        f"% of the {_size(asked.cache.total)} of last-level cache at most, which an antagonist hardly feels "
        "(`bytes: 1.5llc` takes all)."
    )


def is_not_held(asked: Asked) -> str:
    """A dial holds its part only if it comes back to each line before an antagonist has replaced them all."""
    if asked.kernel != "capacity" or asked.bytes is None or asked.cache is None or not asked.rate:
        return ""
    back, replaced = asked.bytes / asked.rate, asked.cache.bytes / asked.antagonist
    if back <= replaced:
        return ""
    return (
        f"{asked.workload}: it comes back to a line after {1e3 * back:.3g} ms, and an antagonist that reads "
        f"{_rate_text(asked.antagonist)} replaces the whole cache in {1e3 * replaced:.3g} ms: it does not hold its "
        f"part. It takes a rate of {_rate_text(asked.bytes / replaced)}."
    )


def is_out_of_reach(asked: Asked) -> str:
    """A rate of memory traffic must not be above what its cores reach."""
    if asked.kernel not in ("bandwidth", "stream") or asked.peak is None or not asked.rate:
        return ""
    most = asked.peak.reached(asked.cores)
    if asked.rate <= most:
        return ""
    return (
        f"{asked.workload}: {_rate_text(asked.rate)} is more than {_cores(asked.cores)} here, which is "
        f"{_rate_text(most)} at most; give it more ('cores' or 'saturate')."
    )


def is_not_felt_in_memory(asked: Asked) -> str:
    """A rate must be a good part of the peak for its antagonists to feel it."""
    if asked.kernel != "bandwidth" or asked.peak is None or not asked.rate:
        return ""
    share = asked.rate / asked.peak.highest()
    if share >= FELT:
        return ""
    return (
        f"{asked.workload}: {_rate_text(asked.rate)} is {100 * share:.2g} % of the {_rate_text(asked.peak.highest())} "
        "that was measured as the peak of a package, which is hardly felt; a rate such as `60%` is a share of it."
    )


def leaves_memory_idle(asked: Asked) -> str:
    """Streaming on few cores of a large package leaves most of its memory bandwidth unused."""
    if asked.kernel != "stream" or asked.peak is None or asked.rate:
        return ""
    mode = asked.mode if asked.mode in asked.peak.curve[0][1] else "triad"
    reached, highest = asked.peak.reached(asked.cores, mode), asked.peak.highest(mode)
    if not asked.peak.saturated:
        return (
            f"{asked.workload}: {_cores(asked.peak.cores)} {_rate_text(highest)}, and no more could be tried: the "
            "memory may give far more, so how busy it is beside this workload is not known."
        )
    if reached >= BUSY * highest:
        return ""
    return (
        f"{asked.workload}: {_cores(asked.cores)} {100 * reached / highest:.2g} % of the {_rate_text(highest)} that "
        "was measured as the peak of a package: a result of no loss beside it shows nothing of a memory that is busy; "
        "'stream-socket' saturates it."
    )


def is_short_of_cores(asked: Asked) -> str:
    """What is to saturate the memory of a package needs as many cores as that takes."""
    if not asked.saturates or asked.peak is None or asked.cores >= asked.peak.saturating:
        return ""
    return (
        f"{asked.workload}: {asked.peak.saturating} cores saturate the memory of a package, and only {asked.cores} "
        f"{'is' if asked.cores == 1 else 'are'} left for it here."
    )


RULES: tuple[Callable[[Asked], str], ...] = (
    stays_in_cache,
    is_not_felt_in_cache,
    is_not_held,
    is_out_of_reach,
    is_not_felt_in_memory,
    is_short_of_cores,
    leaves_memory_idle,
)


def _large_parts(command: Sequence[str]) -> list[str]:
    """The sizes of those parts of a mix that stand for memory, such as 256M of gather.update:100:256M."""
    parts = [word.split(":") for word in command if word.count(":") == 2]
    return [size for kernel, _, size in parts if kernel.partition(".")[0] in STREAMS]


def _bytes(text: str) -> int | None:
    """64M in bytes; None where it is no number of bytes."""
    number, letter = (text[:-1], text[-1:]) if text[-1:] in _LETTERS else (text, "")
    return int(number) << 10 * _LETTERS.get(letter, 0) if number.isdecimal() else None


def _rate(text: str, kernel: str) -> float | None:
    """20M visits, or 5GB/s, in bytes per second; None where it is neither."""
    in_bytes = text.endswith("B/s")
    text = text.removesuffix("B/s")
    number, letter = (text[:-1], text[-1:]) if text[-1:] in _LETTERS else (text, "")
    per_unit = {"capacity": LINE, "chase": LINE, "bandwidth": 1 << 10, "stream": 1 << 20}.get(kernel)
    try:
        amount = float(number) * 1e3 ** _LETTERS.get(letter, 0)
    except ValueError:
        return None
    return amount if in_bytes else amount * per_unit if per_unit else None


def _size(count: int) -> str:
    return f"{count / 2**20:.4g} MiB"


def _rate_text(rate: float) -> str:
    return f"{rate / 1e9:.3g} GB/s"


def _cores(count: int) -> str:
    return "one core reaches" if count == 1 else f"{count} cores reach"
