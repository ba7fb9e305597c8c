"""What the monitors of memory bandwidth count of a known load: one program that reads so many bytes in order."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from castmates.protocols import Monitor, Sample
from castmates.rdt.nothing import NoAllocator
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes.launch import Start, clean_environment
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.surroundings import Surroundings
from castmates.runner.staging import moved_aside, on_stage

LOAD = "stream"
MIB = 1 << 20  # a unit of its progress
TIMES = 4  # the last-level cache, so that almost every line comes from memory
MOST = 4096 * MIB
WARM_UP_S, SECONDS = 0.5, 2.0
READY_S = 60.0
METRICS = ("mbm_total", "mbm_local", "llc_occupancy")


def under_load(programs: Path, cpu: int, cache_bytes: int, monitor: Monitor, warden: Warden) -> str:
    """Let one program read more than the cache holds, and put its own count beside the monitors'."""
    size = min(MOST, TIMES * cache_bytes)
    command = [LOAD, "--mode", "read", "--bytes", str(size)]
    with moved_aside([cpu], lead=[cpu]), on_stage("capture", warden) as stage:
        start = Start(
            name=LOAD,
            cpus=(cpu,),
            nodes=(),
            command=command,
            environment=clean_environment({}, (cpu,), stage.scratch.files, {"PATH": str(programs)}),
            ready_within=READY_S,
        )
        running = stage.launch(start, logs=stage.scratch.files)
        hardware = Hardware(NoAllocator(), monitor, (), Surroundings())
        with stage.watched(hardware, [LOAD]):
            stage.await_ready()
            stage.switch([LOAD])
            stage.sleep_until(stage.now_ns() + int(WARM_UP_S * 1e9))
            running.forget_beats()
            monitor.start()
            stage.sleep_until(stage.now_ns() + int(SECONDS * 1e9))
            samples = monitor.stop()
            stage.read_beats()
            records = running.records
            stage.switch([])
    return in_lines(command, cpu, records, samples)


def in_lines(command: Sequence[str], cpu: int, records: Sequence[tuple[int, int]], samples: Sequence[Sample]) -> str:
    """Put it as a capture has it: `read_bytes_per_s` is the program's own count, the others are the monitors'."""
    lines = [f"program {' '.join(command)}", f"cpu {cpu}"]
    if len(records) > 1:
        (begin, before), (end, after) = records[0], records[-1]
        lines.append(f"read_bytes_per_s {(after - before) * MIB / (end - begin) * 1e9:.0f}")
    for metric in METRICS:
        seen = [one for one in samples if one.subject == LOAD and one.metric == metric]
        values = [one.value for one in seen if one.value is not None]
        unit = "bytes" if metric == "llc_occupancy" else "bytes_per_s"
        if values:
            lines.append(f"{metric}_{unit} {median(values):.0f}")
        if missing := len(seen) - len(values):
            lines.append(f"{metric}_missing {missing} of {len(seen)}")
    return "".join(f"{line}\n" for line in lines)
