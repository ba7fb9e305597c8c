"""What a workload promises to the runner, and the judgement of what was seen: each promise is one function."""

from dataclasses import dataclass

from castmates.runner.rounds.stage import LEAVE
from castmates.study.cpus import format_cpu_list
from castmates.study.model import Workload
from castmates.trials.workloads.alone import Ended, Seen, Stood

STILL_CPU_S = 0.001  # CPU time of a frozen workload that is none
WORKING = 0.5  # share of the time in which a run that is not over has used a CPU
MEMORY_ROOM = 1.1  # times what the catalogue has
MEMORY_FLOOR = 16 << 20  # of any process; it is not worth a word in the catalogue
NAMES = ("ready", "progress", "freezes", "pinned", "threads", "memory", "ends", "restarts")


@dataclass(frozen=True)
class Finding:
    """What was seen of one promise, in a few words for a table, and in a sentence how it was broken, if it was."""

    promise: str
    seen: str
    broken: str = ""

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return not self.broken


def ready(seconds: float) -> Finding:
    """It reports in time that it is ready: that it did is known when this is called."""
    return Finding("ready", f"{seconds:.2f} s")


def progress(seen: Seen, workload: Workload) -> Finding:
    """It reports steps, and at least two, which make a rate."""
    if seen.beats < 2 and workload.progress == "runs" and seen.cpu_s > WORKING * seen.seconds:
        return Finding("progress", f"works; no whole run in {seen.seconds:.0f} s")  # enough for an antagonist
    if seen.beats < 2 or seen.units == 0:
        why = f"it reported {seen.beats} steps in {seen.seconds:.0f} s, which makes no rate: its steps must be shorter"
        return Finding("progress", f"{seen.beats} beats", why)
    if seen.units_s <= 0:
        return Finding("progress", "no time", "all its beats bear the same time, which is not CLOCK_MONOTONIC's")
    rate, pace = seen.units / seen.units_s, (seen.beats - 1) / seen.units_s
    return Finding("progress", f"{_short(rate)} {workload.unit}/s, {_short(pace)} beats/s")


def freezes(stood: Stood) -> Finding:
    """Frozen it stands still, and thawed it goes on."""
    broken = ""
    if not stood.frozen:
        broken = "some thread of it could run while it was frozen"
    elif stood.beats:
        broken = f"it reported {stood.beats} steps while it was frozen"
    elif stood.cpu_s > STILL_CPU_S:
        broken = f"it used {stood.cpu_s:.3f} s of CPU time while it was frozen"
    elif not stood.goes_on:
        broken = "it made no progress any more after it was frozen and thawed"
    return Finding("freezes", "no" if broken else "yes", broken)


def pinned(seen: Seen, cpus: tuple[int, ...]) -> Finding:
    """No thread of it may run elsewhere than on its CPUs."""
    outside = sorted(seen.usage.cpus - set(cpus))
    broken = f"a thread of it may run on CPU {format_cpu_list(outside)}, which it was not given" if outside else ""
    return Finding("pinned", format_cpu_list(sorted(seen.usage.cpus)), broken)


def threads(seen: Seen, workload: Workload) -> Finding:
    """It does not compete with itself: no more busy threads than fit its CPUs, but for a few that feed the others."""
    busy, broken = seen.usage.busy(), ""
    if busy > 2 * workload.cores + 2:
        broken = f"{busy} threads are busy on {workload.cores} CPUs: make its pools smaller, or raise 'cores'"
    return Finding("threads", f"{seen.usage.threads} ({seen.cpu_s / seen.seconds:.1f} CPUs)", broken)


def memory(seen: Seen, workload: Workload) -> Finding:
    """It takes no more memory than the catalogue has, which decides how many share a launch."""
    gigabytes, broken = seen.usage.memory / 1e9, ""
    if seen.usage.memory > max(MEMORY_ROOM * workload.memory_bytes, MEMORY_FLOOR):
        broken = f"it took {gigabytes:.2f} GB, and the catalogue states {workload.memory}: correct 'memory'"
    return Finding("memory", f"{gigabytes:.2f} GB", broken)


def ends(ended: Ended) -> Finding:
    """It ends soon after SIGTERM, and does not find its own result to be wrong."""
    if ended.wrong:
        words = f': "{ended.last_words}"' if ended.last_words else ""
        return Finding("ends", "wrong", f"it found its own result to be wrong{words}")
    if ended.seconds is None:
        return Finding("ends", "too late", f"it had not ended {LEAVE:g} s after SIGTERM")
    return Finding("ends", f"{ended.seconds:.2f} s")


def restarts(seconds: float) -> Finding:
    """It can be started a second time, and works then: that it did is known when this is called."""
    return Finding("restarts", f"{seconds:.2f} s")


def _short(number: float) -> str:
    """Three digits, with the letter of thousands where there are many."""
    for letter, size in (("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if number >= size:
            return f"{number / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"
