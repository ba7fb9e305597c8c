"""The two programs of a trial, and what is done with them: ways are given, lines evicted, loads timed."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from castmates.errors import CastmatesError
from castmates.linux.owned_names import folder_prefix
from castmates.machine.journal import Journal
from castmates.protocols import Allocator, Held, Monitor, Sample
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes.barrier import await_ready
from castmates.runner.processes.freezer import Freezer, choose_freezer
from castmates.runner.processes.launch import Running, Start, WorkloadFailed, clean_environment, launch
from castmates.study.spec import Share

CHASE, EVICTOR = "chase", "evictor"
LINE = 64
MIB = 1 << 20
WINDOW_S = 0.3
CYCLES = 2  # times that every line is visited in a window, at least
OCCUPIED_S = 1.5
POLL_S = 0.01
LONGEST_S = 60.0
READY_S = 60.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a trial takes place, and with how much memory."""

    programs: Path  # the folder of the native kernels
    chase_cpu: int
    evictor_cpu: int  # of the same last-level cache; the chase's own where there is no other
    cache_bytes: int  # of one last-level cache
    full: int  # the mask of all its ways


class HardwareBench:
    """A chase through half of a last-level cache, and a stream that evicts everything from it."""

    def __init__(
        self, setting: Setting, allocator: Allocator, monitor: Monitor, cast: Sequence[Running], freezer: Freezer
    ) -> None:
        self._setting, self._allocator, self._monitor, self._freezer = setting, allocator, monitor, freezer
        self._cast = {one.name: one for one in cast}
        self._lines = chase_bytes(setting) // LINE

    def give(self, mask: int) -> None:
        """Give the chase these ways, evict what it has elsewhere, and let it fill them."""
        self._allocator.apply([] if mask == self._setting.full else [Share(member=CHASE, ways=mask)])
        self._run(EVICTOR, evictor_bytes(self._setting) // MIB, 0.0)
        self._run(CHASE, self._lines, 0.0)

    def ns_per_load(self) -> float:
        """Let the chase run for one window; the median of its short chunks, for others' bursts are not the mask's."""
        records = self._run(CHASE, CYCLES * self._lines, WINDOW_S)
        return median((end - begin) / (after - before) for (begin, before), (end, after) in pairwise(records))

    def occupied(self) -> float | None:
        """Let the chase run until its occupancy stays, and return it in bytes; None where it is not told."""
        self._monitor.start()
        self._run(CHASE, self._lines, OCCUPIED_S)
        return last_half(self._monitor.stop())

    def _run(self, name: str, units: int, seconds: float) -> list[tuple[int, int]]:
        """Let one program run until it has done so much for so long; return its beats: time, and units so far."""
        one, deadline = self._cast[name], time.monotonic() + LONGEST_S
        one.forget_beats()
        self._freezer.thaw(name)
        while True:
            time.sleep(POLL_S)
            one.read_beats()
            if ended := one.ended():
                raise CastmatesError(str(WorkloadFailed.of(one, ended)))
            if len(one.records) > 1:
                first, last = one.records[0], one.records[-1]
                if last[1] - first[1] >= units and last[0] - first[0] >= seconds * 1e9:
                    break
            if time.monotonic() > deadline:
                raise CastmatesError(f"{name} did not get on within {LONGEST_S:g} s: is this machine busy?")
        self._freezer.freeze(name)
        return one.records


def last_half(samples: Sequence[Sample]) -> float | None:
    """The median of the later half of the chase's occupancy, over its caches; None where none was read."""
    at: dict[int, float] = {}
    for sample in samples:
        if sample.subject == CHASE and sample.metric == "llc_occupancy" and sample.value is not None:
            at[sample.t_ns] = at.get(sample.t_ns, 0.0) + sample.value
    series = [at[t] for t in sorted(at)]
    return median(series[len(series) // 2 :]) if series else None


def chase_bytes(setting: Setting) -> int:
    """The chase's buffer: it fits into the whole cache, and by far not into a few ways."""
    return setting.cache_bytes // 2 // LINE * LINE


def evictor_bytes(setting: Setting) -> int:
    """The evictor's buffer: one pass leaves nothing of the chase's lines."""
    return 2 * setting.cache_bytes


@contextmanager
def on_hardware(setting: Setting, allocator: Allocator, monitor: Monitor) -> Iterator[HardwareBench]:
    """Launch both programs, frozen, each in a group of its own; everything is put back at the end, or by the warden."""
    with ExitStack() as exits:
        warden = Warden.start()
        exits.callback(warden.release)
        warden.guard_journal(Journal())
        scratch = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix=folder_prefix())))
        warden.guard_path(scratch)
        freezer = choose_freezer("verify-cat")
        exits.callback(freezer.close)
        for group in freezer.groups():
            warden.guard_cgroup(group)
        exits.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, os.sched_getaffinity(0) - {setting.chase_cpu} or {setting.chase_cpu})

        def adopt(name: str, pid: int) -> None:
            warden.guard_process(pid)
            freezer.adopt(name, pid)

        cast: list[Running] = []
        try:
            for start in _starts(setting, scratch):
                cast.append(launch(start, scratch, scratch, adopt))
            exits.callback(allocator.restore)
            allocator.prepare({one.name: Held(one.pid, one.start.cpus) for one in cast})
            exits.callback(monitor.close)
            monitor.attach({one.name: Held(one.pid, one.start.cpus) for one in cast})
            await_ready(cast, freezer, warden.check)
        except WorkloadFailed as failure:
            raise CastmatesError(str(failure)) from None
        yield HardwareBench(setting, allocator, monitor, cast, freezer)


def _starts(setting: Setting, scratch: Path) -> list[Start]:
    sizes = {
        CHASE: ("chase", setting.chase_cpu, chase_bytes(setting)),
        EVICTOR: ("stream", setting.evictor_cpu, evictor_bytes(setting)),
    }
    return [
        Start(
            name=name,
            cpus=(cpu,),
            nodes=(),
            command=[kernel, "--bytes", str(size)],
            environment=clean_environment({}, (cpu,), scratch, {"PATH": str(setting.programs)}),
            ready_within=READY_S,
        )
        for name, (kernel, cpu, size) in sizes.items()
    ]
