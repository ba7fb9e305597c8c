"""Reads what `perf script` prints: the stacks that perf sampled, into a timeline.

perf finds the names of functions. c++filt of binutils makes names of C++ readable, without their parameters. perf can
do it, too, but does it for every function of every library: of 7 s for TensorFlow's this takes 4, and 0.3 GB.
"""

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from castmates.timeline.model import Making, Registry

# Reading the symbols of TensorFlow alone takes perf ten seconds and 0.9 GB; by lines of source it would take minutes.
SLOWEST = 300.0  # seconds for perf to print everything
NO_PERF = "there is no perf here to read what it recorded"


@contextmanager
def _printed(file: Path, fields: str, *options: str) -> Iterator[tuple[IO[str], Callable[[], str]]]:
    """What `perf script` prints of the file, and a function that waits for its end and returns what went wrong."""
    command = ["perf", "script", "--force", "--no-inline", "--ns", "--show-lost-events", *options]
    command += ["-F", fields, "-i", str(file)]
    # With this one perf would ask the network for symbols.
    asked = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
    late = threading.Event()
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, text=True, errors="replace",
            env=asked | {"LC_ALL": "C"},
        )  # fmt: skip

        def give_up() -> None:
            late.set()
            process.kill()

        def end() -> str:
            if process.wait() == 0:
                return ""
            if late.is_set():
                return f"perf took longer than {SLOWEST:g} s to print the samples; the rest of them is missing"
            complaints.seek(0)
            said = [line.strip() for line in complaints if line.strip()]
            return f"perf cannot read {file.name}: {said[-1].rstrip('.') if said else 'it does not say why'}"

        timer = threading.Timer(SLOWEST, give_up)
        timer.start()
        try:
            assert process.stdout is not None
            yield process.stdout, end
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def taken(file: Path, fields: str, take: Callable[[Iterable[str]], None], *options: str) -> str:
    """Have the lines that `perf script` prints of the file taken; return what went wrong."""
    try:
        with _printed(file, fields, *options) as (lines, end):
            take(lines)
            return end()
    except FileNotFoundError:
        return NO_PERF


def about(name: str, file: Path, events: Mapping[str, int], lost: int, why: str) -> dict[str, Any]:
    """What the record of a trace has of a source that perf sampled, whose clock is that of the timeline."""
    size = file.stat().st_size if file.is_file() else 0
    return {"name": name, "events": dict(events), "lost": lost, "bytes": size, "alignment_ns": 0, "reason": why}


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


TIMEOUT = 60.0
MANGLED = ("_Z", "_R", "__Z")


def can_demangle() -> bool:
    """Whether there is a c++filt here; perf does it where there is none."""
    return shutil.which("c++filt") is not None


def demangled(names: Iterable[str]) -> dict[str, str]:
    """The readable form of each name that has one."""
    asked = sorted({name for name in names if name.startswith(MANGLED)})
    if not asked or not can_demangle():
        return {}
    try:
        done = subprocess.run(
            ["c++filt", "-p"], input="\n".join(asked) + "\n", capture_output=True, text=True, errors="replace",
            timeout=TIMEOUT, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    answers = done.stdout.splitlines()
    if len(answers) != len(asked):
        return {}
    pairs = zip(asked, answers, strict=True)
    return {name: (scopes(name) if answer == name else answer).replace(";", ":") for name, answer in pairs}


def scopes(name: str) -> str:
    """The scopes at the begin of a name that c++filt does not know, as it is with new forms of templates."""
    found = re.match(r"_Z(Z?)N[KVO]*(?=\d)", name)
    if found is None:
        return name
    at, parts = found.end(), []
    while length := re.match(r"\d+", name[at:]):
        at += length.end()
        parts.append(name[at : at + int(length[0])])
        at += int(length[0])
    return "::".join([*parts, *(["{inside}"] if found[1] else [])])


def add_stacks(
    making: Making,
    registry: Registry,
    file: Path,
    members: Mapping[int, str],
    span: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Add the stacks of a perf.data to the tracks of their threads; return what the record of the trace has of it.

    Of a `span` only the samples within it are added.
    """
    gathered = _Gathered(registry, members)

    def take(lines: Iterable[str]) -> None:
        for each in samples(lines):
            if span is None or isinstance(each, Lost) or span[0] <= each.t_ns <= span[1]:
                gathered.add(each)

    why = taken(file, FIELDS, take, *(["--no-demangle"] if can_demangle() else []))
    gathered.into(making)
    return about("stacks", file, gathered.events, gathered.lost, why) | {"cut": gathered.cut}


class _Gathered:
    """Samples in columns; equal stacks are kept once."""

    def __init__(self, registry: Registry, members: Mapping[int, str]) -> None:
        self._registry, self._members = registry, members
        self._stacks: dict[str, int] = {}
        self._tracks: dict[int, int] = {}
        self._rows: dict[str, list[Any]] = {name: [] for name in ("t_ns", "track", "cpu", "event", "weight", "stack")}
        self._lost, self.cut = {True: 0, False: 0}, 0
        self.events: dict[str, int] = {}

    @property
    def lost(self) -> int:
        """The larger of the two counts: a lost sample is in both."""
        return max(self._lost.values())

    def add(self, each: Sample | Lost) -> None:
        if isinstance(each, Lost):
            self._lost[each.of_samples] += each.count
            return
        text = stack(each.frames)
        self.cut += text.startswith(CUT)
        self.events[each.event] = self.events.get(each.event, 0) + 1
        code = self._stacks.setdefault(text, len(self._stacks))
        row = (each.t_ns, self._track(each), each.cpu, each.event, each.weight, code)
        for column, value in zip(self._rows.values(), row, strict=True):
            column.append(value)

    def _track(self, each: Sample) -> int:
        track = self._tracks.get(each.tid)
        if track is None:
            member = self._members.get(each.pid, "")
            track = self._tracks[each.tid] = self._registry.thread(each.tid, each.pid, each.comm, member)
        return track

    def into(self, making: Making) -> None:
        """Add everything that was gathered."""
        if self._stacks:
            found, codes_of = _readable(list(self._stacks))
            codes = codes_of[np.array(self._rows.pop("stack"))]
            stacks = pd.Categorical.from_codes(codes, categories=pd.Index(found, dtype="str"))
            making.stacks(**self._rows, stack=stacks, source="perf")


def _readable(stacks: list[str]) -> tuple[list[str], np.ndarray]:
    """The stacks with readable names, each once, and which of them each stack has become."""
    frames = [[_bare(name) for name in each.split(";")] for each in stacks]
    names = demangled(name for each in frames for name, _ in each)
    texts = [";".join(names.get(name, name) + ending for name, ending in each) for each in frames]
    codes, found = pd.factorize(np.array(texts, object))
    return list(found), codes


def _bare(name: str) -> tuple[str, str]:
    """A frame's name, and the mark of its kind at its end."""
    ending = next((each for each in (KERNEL, COMPILED) if name.endswith(each)), "")
    return name.removesuffix(ending), ending
