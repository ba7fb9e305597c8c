"""Reads oneDNN's log of the primitives that it executed (ONEDNN_VERBOSE=profile_exec, with time stamps).

A line has, separated by commas: the mark, the format's version and `primitive` (from oneDNN 3 on), the time stamp,
`exec`, the engine, the primitive, its implementation, propagation, operands, attributes, algorithm, shapes, and how
long it took. Time stamps are milliseconds of CLOCK_REALTIME when the primitive began, in steps of about 0.25 µs.
Whatever else stands in the log is counted, and not read.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import reason

MARKS = ("onednn_verbose", "dnnl_verbose", "mkldnn_verbose")
FIELDS = 8  # after the engine, the time at the end
FOREIGN, CUT, UNKNOWN = "not oneDNN's", "cut", "unknown form"  # why a line is no execution
TIMELESS, ELSEWHERE = "without a time stamp", "not on a CPU"
_VERSION = re.compile(r"v\d+")
_STAMP = re.compile(r"\d+\.\d+")
_INFORMATION = re.compile(r"info,(?:oneDNN|DNNL|MKL-DNN) (v[\d.]+)|info,cpu,isa:(.*)")


@dataclass(frozen=True)
class Execution:
    """One execution of a primitive."""

    begin_ns: int  # CLOCK_REALTIME
    duration_ns: int
    primitive: str  # matmul, convolution …
    implementation: str  # brg_matmul:avx512_core; "" where oneDNN does not log it
    propagation: str  # forward_training, backward_data …; undef where there is only one
    operands: str  # as logged: src:f32::blocked:ab::f0 wei:…
    attributes: str
    algorithm: str
    shapes: str  # 256x384:384x512, mb4_ic16oc32_ih28…


@dataclass
class Log:
    """What a log has."""

    executions: list[Execution] = field(default_factory=list)
    other_lines: Counter[str] = field(default_factory=Counter)  # why they are no executions
    version: str = ""  # of oneDNN
    instructions: str = ""  # the most that oneDNN found on the processor, in its own words


def read_log(path: Path) -> Log:
    """Read a log; a file that cannot be read is a sentence, a line that cannot be is counted."""
    log = Log()
    try:
        with path.open("rb") as file:
            for raw in file:
                _take(log, raw)
    except OSError as problem:
        raise CastmatesError(f"{path}: oneDNN's log cannot be read ({reason(problem)}).") from None
    return log


def _take(log: Log, raw: bytes) -> None:
    line = raw.decode("utf-8", "replace")
    whole = line.endswith("\n")
    mark, _, rest = line.strip().partition(",")
    if mark not in MARKS:
        log.other_lines[FOREIGN if whole else CUT] += 1
        return
    if not whole:
        log.other_lines[CUT] += 1  # its last number may lack digits
        return
    words = rest.split(",")
    if _VERSION.fullmatch(words[0]):
        words.pop(0)
    if found := _INFORMATION.match(",".join(words)):
        log.version, log.instructions = found[1] or log.version, found[2] or log.instructions
    stamp = words.pop(0) if words and _STAMP.fullmatch(words[0]) else None
    if words[:1] == ["primitive"]:
        words.pop(0)
    if words[:1] != ["exec"]:
        log.other_lines[words[0].partition(":")[0] if words else CUT] += 1  # info, create, graph …
        return
    found_or_why = _execution(stamp, words[1:])
    if isinstance(found_or_why, str):
        log.other_lines[found_or_why] += 1
    else:
        log.executions.append(found_or_why)


def _execution(stamp: str | None, words: list[str]) -> Execution | str:
    """What a line says, or why it says nothing that can be used."""
    if len(words) != 1 + FIELDS:
        return UNKNOWN
    engine, *words, took = words
    if engine.partition(":")[0] != "cpu":
        return ELSEWHERE
    if stamp is None:
        return TIMELESS
    try:
        milliseconds = float(took)
    except ValueError:
        return UNKNOWN
    if not math.isfinite(milliseconds) or milliseconds < 0:
        return UNKNOWN
    primitive, implementation, propagation, operands, attributes, algorithm, shapes = (word.strip() for word in words)
    return Execution(
        begin_ns=nanoseconds(stamp),
        duration_ns=round(1e6 * milliseconds),
        primitive=primitive,
        implementation=implementation,
        propagation=propagation,
        operands=operands,
        attributes=attributes,
        algorithm=algorithm,
        shapes=shapes,
    )


def nanoseconds(milliseconds: str) -> int:
    """A time stamp in nanoseconds, by its digits: a float would lose some."""
    whole, _, part = milliseconds.partition(".")
    return 1_000_000 * int(whole) + int(f"{part:0<6.6}")


def operand_types(operands: str) -> Iterator[tuple[str, str]]:
    """The data type of each operand, by its role: src f32; `src:f32::blocked:ab::f0`, or `src_f32::…` before 3.5."""
    for operand in operands.split():
        found = re.match(r"((?:diff_)?(?:src|wei|bia|dst|data)|diff|ws|dat|stats)\d*[:_](\w+)", operand)
        if found and found[2] != "undef":
            yield found[1], found[2]
