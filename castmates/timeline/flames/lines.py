"""What `perf script` prints of sampled stacks, line by line."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

FIELDS = "comm,pid,tid,cpu,time,period,event,ip,sym,dso"
CUT = "[cut]"  # stands below a stack whose outermost frames could not be found
KERNEL, COMPILED = "_[k]", "_[j]"  # end the name of a frame in the kernel, and in code compiled at run time
OUTERMOST = re.compile(r"_start|start_thread|_*clone3?|_*libc_start_.*|thread_start|ret_from_fork.*|main")

_SAMPLE = re.compile(
    r"\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<s>\d+)\.(?P<ns>\d{9}):"
    r"\s+(?P<period>\d+)\s+(?P<event>\S.*?):\s*$"
)
_LOST = re.compile(r"PERF_RECORD_LOST(?P<samples>_SAMPLES)?\s+lost\s+(?P<count>\d+)")
_VERSION = re.compile(r"@@?[A-Z]+_[\d.]+$")  # of a symbol in the C library
_DELETED = " (deleted)"
_MODULE = re.compile(r"(.*) \(([/\[].*)")  # a path, or a name in brackets; C++ has parentheses in symbols, too


@dataclass(slots=True)
class Sample:
    """One sampled stack."""

    comm: str
    pid: int
    tid: int
    cpu: int
    t_ns: int
    weight: float
    event: str
    frames: list[str] = field(default_factory=list)  # from the innermost to the outermost


@dataclass(frozen=True)
class Lost:
    """What was lost: records of any kind, or samples alone, which perf counts once more."""

    count: int
    of_samples: bool


def samples(lines: Iterable[str]) -> Iterator[Sample | Lost]:
    """The samples, and between them what was lost; a line that is neither belongs to no sample and is skipped."""
    names: dict[str, str] = {}
    current: Sample | None = None
    for line in lines:
        if line.startswith(("\t", " ")) and current is not None and line.strip():
            text = line.strip()
            if (name := names.get(text)) is None:
                name = names[text] = frame(text)
            current.frames.append(name)
            continue
        if current is not None:
            yield current
            current = None
        if found := _SAMPLE.match(line):
            current = _begun(found)
        elif lost := _LOST.search(line):
            yield Lost(int(lost["count"]), lost["samples"] is not None)
    if current is not None:
        yield current


def _begun(found: re.Match[str]) -> Sample:
    return Sample(
        comm=found["comm"],
        pid=int(found["pid"]),
        tid=int(found["tid"]),
        cpu=int(found["cpu"]),
        t_ns=int(found["s"]) * 1_000_000_000 + int(found["ns"]),
        weight=float(found["period"]),
        event=found["event"].removesuffix(":u"),
    )


def frame(text: str) -> str:
    """The name of a frame, of `address symbol (module)`; one without a symbol has its module's in brackets."""
    _, _, rest = text.partition(" ")
    rest = rest.removesuffix(")").removesuffix(_DELETED)
    found = _MODULE.fullmatch(rest)
    symbol, module = (found[1].strip(), found[2]) if found else (rest, "[unknown]")
    short = module.rpartition("/")[2] or "unknown"
    if not symbol or symbol == "[unknown]":
        return f"[{short.strip('[]')}]"
    name = _VERSION.sub("", symbol).replace(";", ":")
    if module.startswith("[kernel") or module.endswith(".ko") or module == "[guest.kernel.kallsyms]":
        return name + KERNEL
    return name + COMPILED if re.fullmatch(r"perf-\d+\.map", short) else name


def stack(frames: list[str]) -> str:
    """The frames from the outermost to the innermost, joined by semicolons."""
    found = frames
    while found and found[-1] == "[unknown]":  # an address that no module has ends every walk that went astray
        found = found[:-1]
    if not found:
        return CUT
    whole = OUTERMOST.fullmatch(found[-1].removesuffix(KERNEL))
    return ";".join([*([] if whole else [CUT]), *reversed(found)])
