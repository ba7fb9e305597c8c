"""Captures this machine: its kernel files, and what is found out by asking."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from typing import Any

import castmates
from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.linux.msr import read_msr
from castmates.machine.capture.capture import COMMAND, record, refuse_other_files
from castmates.machine.journal import Journal
from castmates.machine.lock import machine_lock
from castmates.machine.topology import Topology, read_topology
from castmates.protocols import Monitor, Sample, Say
from castmates.rdt.choose import NoAllocator, NoMonitor, choose_monitor
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.rdt.resctrl.mounting import lease
from castmates.runner.cleanup.restore import heal
from castmates.runner.cleanup.warden import Warden, guarded
from castmates.runner.processes.launch import Start, WorkloadFailed, clean_environment
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.ledger_load import Surroundings
from castmates.runner.staging import moved_aside, on_stage
from castmates.workloads import environments


def capture(file: Path, envs: Path, cache: Path, say: Say) -> None:
    """Write this machine into a file, and list what it lacks; resctrl is mounted meanwhile where that works."""
    refuse_other_files(file)
    with machine_lock(COMMAND, wait=False), ExitStack() as exits:
        for sentence in heal().sentences:
            say(sentence)
        # Until the end: when the warden goes, what the journal names goes too, and with it the mount.
        warden = exits.enter_context(guarded())
        warden.guard_journal(Journal())
        lacks = list(_mounted_for_now(exits))
        topology = read_topology()
        found_out = {"castmates/version": f"{castmates.__version__}\n", **perf_lists()}
        if "castmates/perf/list" not in found_out:
            lacks.append("perf's lists of events, because there is no perf here")
        read = registers(host.cpuinfo().get("vendor_id"), topology)
        if not read:
            lacks.append("registers, which root reads where the module msr is loaded (modprobe msr)")
        found_out |= read
        try:
            found_out["castmates/bandwidth"] = _bandwidth(topology, envs, cache, warden)
        except (CastmatesError, WorkloadFailed) as problem:
            lacks.append(f"memory bandwidth under a known load: {problem}")
        count = record(file, found_out=found_out)
    say(f"{file}: {count} kernel files of this machine, without names of hosts and users, paths and serial numbers.")
    for lack in lacks:
        say(f"Not in it: {lack}")
    say(f"To see all of it before you send it: zcat {file}")


def _mounted_for_now(exits: ExitStack) -> Iterator[str]:
    """Have resctrl mounted until the end; where that cannot be, say why."""
    try:
        exits.callback(lease(purpose=COMMAND).release)
    except CastmatesError as problem:
        yield f"resctrl: {problem}"


def _bandwidth(topology: Topology, envs: Path, cache: Path, warden: Warden) -> str:
    offered = read_cache()
    if offered is None or not any(event.startswith("mbm") for event in offered.events):
        raise CastmatesError("resctrl counts no memory traffic here")
    cpu, size = _place(topology)
    programs = environments.build(environments.NATIVE, envs, cache) / "bin"
    monitor = choose_monitor(purpose=COMMAND)
    if isinstance(monitor, NoMonitor):
        raise CastmatesError("; ".join(monitor.about().values()))
    return under_load(programs, cpu, size, monitor, warden)


def _place(topology: Topology) -> tuple[int, int]:
    """Choose a CPU and find the size of its last-level cache."""
    for llc in topology.llcs:
        for cpu in llc.cpus:
            if cpu in topology.allowed and llc.bytes:
                return cpu, llc.bytes
    raise CastmatesError("sysfs shows no last-level cache of a CPU that may be used")


# What the monitors of memory bandwidth count of a known load: one program that reads so many bytes in order.

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


# What perf knows of this processor: its events and metrics, by name and formula, without their descriptions.

WITHIN_S = 60.0
OF_EVENT = ("Unit", "Encoding")
# Not all it lists: tracepoints and probes have the names of other people's programs.
KINDS = ("hw", "sw", "cache", "pmu", "metric")


def perf_lists() -> dict[str, str]:
    """Ask perf; nothing where there is none."""
    perf = shutil.which("perf")
    version = _printed(perf, "--version") if perf else ""
    if not perf or not version.startswith("perf version "):
        return {}
    lines = sorted({line for kind in KINDS for line in _listed(perf, kind)})
    return {"castmates/perf/version": version, "castmates/perf/list": "".join(f"{line}\n" for line in lines)}


def _listed(perf: str, kind: str) -> Iterator[str]:
    """Yield a line for each event and metric, from its JSON (6.2 and later) or, before, its bare names."""
    text = _printed(perf, "list", "--json", kind)
    if text.lstrip().startswith("["):
        yield from from_json(text)
        return
    word = "metric" if kind == "metric" else "event"
    yield from (f"{word} {name}" for name in _printed(perf, "list", "--raw-dump", kind).split())


def from_json(text: str) -> Iterator[str]:
    """Yield a line for each entry: an event with its unit and encoding, a metric with its groups, unit and formula."""
    try:
        entries: list[dict[str, Any]] = json.loads(re.sub(r",\s*([\]}])", r"\1", text))
    except ValueError:
        return
    for entry in entries:
        if "Tracepoint" in str(entry.get("EventType", "")):
            continue
        if name := entry.get("MetricName"):
            yield "\t".join(
                [f"metric {name}", *(_word(entry, key) for key in ("MetricGroup", "ScaleUnit", "MetricExpr"))]
            )
        elif name := entry.get("EventName"):
            yield "\t".join([f"event {name}", *(_word(entry, key) for key in OF_EVENT)])


def _word(entry: dict[str, Any], key: str) -> str:
    return " ".join(str(entry.get(key, "")).split())


def _printed(perf: str, *words: str) -> str:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/"}
    try:
        done = subprocess.run(
            [perf, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WITHIN_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


# The registers that a capture has: what shares caches and bandwidth out, and what sets clocks and prefetchers.
#
# None of them names a processor: those with its serial number (0x4e, 0x4f on Intel, 0xc00102f0 and 0xc00102f1 on AMD)
# are not in the list, and nothing else is read.

# By vendor: names and addresses as in Linux (arch/x86/include/asm/msr-index.h).
OF_INTEL = (
    0xC81,  # L3_QOS_CFG: whether code and data are kept apart
    0xC82,  # L2_QOS_CFG
    *range(0xC90, 0xCA0),  # L3_MASK_n
    *range(0xD10, 0xD20),  # L2_MASK_n
    *range(0xD50, 0xD60),  # MBA throttle n
    0xCA0,  # RMID_SNC_CONFIG: how monitoring ids are divided among sub-NUMA clusters
    0xCE,  # PLATFORM_INFO: the nominal clock
    0xE2,  # PKG_CST_CONFIG_CONTROL: C-states of the package
    0x1A0,  # MISC_ENABLE
    0x1A4,  # MISC_FEATURE_CONTROL: prefetchers
    0x1AD,  # TURBO_RATIO_LIMIT
    0x1B0,  # ENERGY_PERF_BIAS
    0x1FC,  # POWER_CTL
    0x606,  # RAPL_POWER_UNIT
    0x610,  # PKG_POWER_LIMIT
    0x620,  # UNCORE_RATIO_LIMIT
    0x774,  # HWP_REQUEST
)
OF_AMD = (
    0xC81,  # L3_QOS_CFG
    *range(0xC90, 0xCA0),  # L3_MASK_n
    *range(0xC0000200, 0xC0000210),  # L3QOS_BW_CONTROL_n
    *range(0xC0000280, 0xC0000290),  # L3QOS_SLOWBW_CONTROL_n
    0xC00003FF,  # L3_QOS_EXT_CFG: assignable counters, and what I/O may fill
    0xC0010015,  # HWCR: whether boost is off
    0xC0000108,  # PREFETCH_CONTROL
    *range(0xC0010061, 0xC0010065),  # P-state limit, control, status and the first P-state
    0xC0010299,  # RAPL_PWR_UNIT
)
READ = {"GenuineIntel": OF_INTEL, "AuthenticAMD": OF_AMD}


def registers(vendor: str | None, topology: Topology) -> dict[str, str]:
    """Read them on one CPU of each last-level cache; nothing where they may not be read."""
    cpus = [next((cpu for cpu in llc.cpus if cpu in topology.allowed), None) for llc in topology.llcs]
    found = {}
    for cpu in (cpu for cpu in cpus if cpu is not None):
        for address in READ.get(vendor or "", ()):
            with suppress(OSError):  # this user may not look, or this processor has no such register
                found[f"castmates/msr/cpu{cpu}/{address:#x}"] = f"{read_msr(cpu, address):#018x}\n"
    return found
