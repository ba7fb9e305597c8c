"""The key `progress` of a workload: by what its progress is read."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from castmates.study.written import Written

Way = Literal["heartbeat", "runs", "output", "barriers", "calls", "instructions"]
UNITS = {"runs": "run", "barriers": "iteration", "calls": "call", "instructions": "instruction"}  # else it is a step
MAKES_NO_STEPS = ("runs", "calls", "instructions")  # between which it could stand
NAMED = ("heartbeat", "runs", "output", "barriers", "instructions")
CALLS, SQLITE = r"[^:]+(:[^:]+){1,2}", '"libsqlite3.so.0:sqlite3_step"'


class Calls(Written):
    """Progress that is calls of a function, whatever the program."""

    calls: str = Field(
        description="PROGRAM:FUNCTION, or PROGRAM:PROVIDER:PROBE of a USDT probe; PROGRAM is a program or a shared "
        "library, such as libsqlite3.so.0:sqlite3_step",
    )


def _progress(value: object) -> object:
    calls = value.get("calls") if isinstance(value, dict) and len(value) == 1 else None
    if isinstance(value, Calls) or (isinstance(value, str) and value in NAMED):
        return value
    if isinstance(calls, str) and re.fullmatch(CALLS, calls):
        return value
    raise ValueError(f"one of {', '.join(NAMED)}, or {{calls: PROGRAM:FUNCTION}} such as {{calls: {SQLITE}}}")


Progress = Annotated[
    Literal["heartbeat", "runs", "output", "barriers", "instructions"] | Calls,
    BeforeValidator(_progress),
    Field(
        description="'heartbeat': the program reports ready and its steps; 'runs': it is run again and again and "
        "each completed run is one unit; 'output': its lines of output show its steps; 'barriers': it was patched for "
        "BenchCast, and each iteration of its region of interest is a step; 'calls: PROGRAM:FUNCTION': each call is a "
        "step; 'instructions': those that retire in user mode, as the processor counts them",
    ),
]
