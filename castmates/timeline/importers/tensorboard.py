"""Reads a TensorBoard profile: the XSpace of each host, with steps, operations, calls, and kernels of GPUs.

Its times are of CLOCK_REALTIME.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.explanations.layers import RUNTIME
from castmates.errors import CastmatesError
from castmates.timeline.importers.kernel import Account, record
from castmates.timeline.importers.lines import Ints, Progress
from castmates.timeline.model import Making, Timeline, categories
from castmates.timeline.states import rows_of
from castmates.traces.devices import GPU, KINDS, STREAM
from castmates.traces.nesting import fitted
from castmates.traces.operations import begin_of, operation_of
from castmates.traces.xspace import EventName, Events, Line, Plane, Space
from castmates.workloads.tfmodels.xspace import INPUT_THREADS, STEP

SOURCE = "tensorboard"
FILES, BELOW = "*.xplane.pb", "plugins/profile"
STEPS = (STEP, "train", "TraceContext")  # marks of steps: ours, and those of tf.profiler.experimental.Trace
STEP_NUMBER = "step_num"
INSTRUCTION, PROGRAM = "hlo_op", "hlo_module"  # of what XLA runs, as for JAX
COPIES, KERNEL = {"copy", "set"}, "kernel"
PS = 1000
EVENT = np.dtype([("kind", "i8"), ("offset_ps", "i8"), ("end_ps", "i8"), ("number", "f8")])


def recognises(path: Path, beginning: bytes) -> bool:
    """Whether a folder has files of a profile, or a file is an XSpace by its first field, a plane with a name."""
    if path.is_dir():
        return bool(files_of(path))
    return path.name.endswith(FILES[1:]) or (beginning[:1] == b"\n" and b"/host:CPU" in beginning[:4096])


def files_of(path: Path) -> list[Path]:
    """The files of all hosts of a run, which is named by itself or by a folder that has one run."""
    if path.is_file():
        return [path]
    found = sorted(path.glob(FILES)) or sorted(path.glob(f"{BELOW}/*/{FILES}")) or sorted(path.glob(f"*/{FILES}"))
    return found or sorted(path.glob(f"*/{BELOW}/*/{FILES}"))


def read(path: Path, progress: Progress) -> Timeline:
    """Read the profile of a run."""
    files, account = files_of(path), Account()
    if len(runs := sorted({file.parent for file in files})) > 1:
        names = ", ".join(str(run.relative_to(path)) for run in runs[:3])
        raise CastmatesError(f"{path}: there are {len(runs)} profiles in it; name the folder of one ({names} …).")
    making = Making()
    for file in files:
        with Space(file) as space:
            planes = space.planes()
            _Host(making, account, file, begin_of({plane.name: plane for plane in planes})).add(planes)
        progress(file.stat().st_size)
    if not account.read:
        raise CastmatesError(f"{path}: there are no events in this profile.")
    making.about = record(path, SOURCE, account, "CLOCK_REALTIME", sum(file.stat().st_size for file in files))
    return making.made()


class _Host:
    """The planes of one host."""

    def __init__(self, making: Making, account: Account, file: Path, began_ns: int) -> None:
        self._making, self._account, self._began = making, account, began_ns
        self._host = file.name.removesuffix(FILES[1:])
        self._process: int | None = None

    def add(self, planes: list[Plane]) -> None:
        """Add what the planes have."""
        for plane in planes:
            device = plane.name.startswith("/device:")
            for line in plane.lines():
                kinds = _DeviceKinds(plane) if device else _HostKinds(plane, line)
                if device and not line.name.startswith(STREAM) and plane.name.startswith(GPU):
                    some = sum(len(events.kinds) for events in line.events())
                    self._account.read += some
                    self._account.leave(f"'{line.name}', which is derived from other lines", some)
                else:
                    self._line(plane, line, kinds, device)

    def _line(self, plane: Plane, line: Line, kinds: "_Kinds", device: bool) -> None:
        start = line.timestamp_ns + (self._began if line.timestamp_ns < self._began else 0)
        parts = [
            rows_of(EVENT, kind=kinds.kinds(some), offset_ps=some.offset_ps, end_ps=some.offset_ps + some.duration_ps,
                    number=kinds.numbers(some))
            for some in line.events(kinds.stats)
        ]  # fmt: skip
        if not parts:
            return
        events = np.concatenate(parts)
        self._account.read += len(events)
        begin, end, number = start + events["offset_ps"] // PS, start + events["end_ps"] // PS, events["number"]
        track = self._track(plane, line, device)
        for word, name, detail, chosen in kinds.parted(events["kind"]):
            self._account.use(word, int(chosen.sum()))
            depth, until, _ = fitted(np.full(int(chosen.sum()), track), begin[chosen], end[chosen])
            self._making.intervals(
                t0_ns=begin[chosen],
                t1_ns=until,
                track=track,
                kind=word,
                name=name,
                depth=depth,
                value=number[chosen],
                detail=detail,
                source=SOURCE,
            )

    def _track(self, plane: Plane, line: Line, device: bool) -> int:
        name = line.display_name or line.name or plane.name
        if device:
            return self._making.track("device", f"{plane.name.removeprefix('/device:')} {name}")
        if self._process is None:
            self._process = self._making.track("process", self._host)
        return self._making.track("thread", name, self._process)


class _Kinds(ABC):
    """What the events of a line are: their kinds, names and details, by the number of their name."""

    stats: tuple[str, ...] = ()

    def __init__(self, plane: Plane) -> None:
        self._names = {number: self.label(name) for number, name in plane.event_names.items()}
        self._told: dict[tuple[str, str, str], int] = {}  # kinds that statistics tell: their numbers, below zero

    def label(self, name: EventName) -> str:
        """What events of a name are called."""
        return name.name or name.display_name

    @abstractmethod
    def of(self, name: str) -> tuple[str, str, str]:
        """Kind, name and detail of events of this name."""

    def kinds(self, events: Events) -> Ints:
        """The number of each event's name, or that of what its statistics tell."""
        return events.kinds

    def told(self, kind: str, name: str, detail: str) -> int:
        """The number of a kind that statistics tell."""
        return self._told.setdefault((kind, name, detail), -1 - len(self._told))

    def numbers(self, events: Events) -> Any:  # noqa: ANN401 (an array)
        """A number of each event; NaN for none."""
        return np.full(len(events.kinds), np.nan)

    def parted(self, kinds: Ints) -> Iterator[tuple[str, pd.Categorical, pd.Categorical, Any]]:
        """Yield each kind with its events' names and details, and which events these are."""
        unique, places = np.unique(kinds, return_inverse=True)
        told = {number: kind for kind, number in self._told.items()}
        found = [told.get(number) or self.of(self._names.get(number, f"event {number}")) for number in unique.tolist()]
        words = np.array([each[0] for each in found])[places]
        for word in sorted({each[0] for each in found}):
            chosen = words == word
            columns = [categories(places[chosen], [each[side] for each in found]) for side in (1, 2)]
            yield word, columns[0], columns[1], chosen


class _HostKinds(_Kinds):
    """Steps, operations and calls on the threads of a host."""

    stats = (STEP_NUMBER, INSTRUCTION, PROGRAM)

    def __init__(self, plane: Plane, line: Line) -> None:
        super().__init__(plane)
        self._of_input = line.name.startswith(INPUT_THREADS)

    def of(self, name: str) -> tuple[str, str, str]:
        """An operation's name is that of its node in the graph."""
        if name in STEPS or name.startswith(f"{STEPS[1]}#"):
            return "step", name, ""
        known = operation_of(name, self._of_input)
        return ("operation", known.name, known.type) if known and known.type != RUNTIME else ("call", name, "")

    def kinds(self, events: Events) -> Ints:
        """Programs name their steps as they like, and instructions have names of any form."""
        found, programs = events.kinds.copy(), events.stats.get(PROGRAM, {})
        for place in events.stats.get(STEP_NUMBER, {}):
            found[place] = self.told("step", self._names.get(int(found[place]), ""), "")
        for place, name in events.stats.get(INSTRUCTION, {}).items():
            found[place] = self.told("operation", str(name), str(programs.get(place, "")))
        return found

    def numbers(self, events: Events) -> Any:  # noqa: ANN401
        """The number of a step."""
        found = super().numbers(events)
        for place, value in events.stats.get(STEP_NUMBER, {}).items():
            found[place] = float(value) if isinstance(value, int | float) else np.nan
        return found


class _DeviceKinds(_Kinds):
    """Kernels and copies on the streams of a device."""

    def __init__(self, plane: Plane) -> None:
        super().__init__(plane)
        self._facts: Mapping[str, Any] = {self.label(name): name.stats or {} for name in plane.event_names.values()}

    def label(self, name: EventName) -> str:
        """Kernels have a shorter name to be shown."""
        return name.display_name or name.name

    def of(self, name: str) -> tuple[str, str, str]:
        """A kernel, or a copy, by what its name's statistics or the name itself show."""
        activity = next((KINDS[fact] for fact in self._facts.get(name, {}) if fact in KINDS), "")
        is_copy = activity in COPIES or name.lower().startswith(("memcpy", "memset"))
        return ("copy" if is_copy else KERNEL), name, ""
