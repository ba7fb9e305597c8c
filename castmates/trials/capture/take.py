"""Captures this machine: its kernel files, and what is found out by asking."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import castmates
from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.machine.capture.capture import COMMAND, record, refuse_other_files
from castmates.machine.journal import Journal
from castmates.machine.lock import machine_lock
from castmates.machine.topology import Topology, read_topology
from castmates.protocols import Say
from castmates.rdt.choose import choose_monitor
from castmates.rdt.nothing import NoMonitor
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.rdt.resctrl.mounting import lease
from castmates.runner.cleanup.restore import heal
from castmates.runner.cleanup.warden import guarded
from castmates.runner.processes.launch import WorkloadFailed
from castmates.trials.capture.bandwidth import under_load
from castmates.trials.capture.perf_lists import perf_lists
from castmates.trials.capture.registers import registers
from castmates.workloads import environments


def capture(file: Path, envs: Path, cache: Path, say: Say) -> None:
    """Write this machine into a file, and list what it lacks; resctrl is mounted meanwhile where that works."""
    refuse_other_files(file)
    with machine_lock(COMMAND, wait=False), ExitStack() as exits:
        for sentence in heal().sentences:
            say(sentence)
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
            found_out["castmates/bandwidth"] = _bandwidth(topology, envs, cache)
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


def _bandwidth(topology: Topology, envs: Path, cache: Path) -> str:
    offered = read_cache()
    if offered is None or not any(event.startswith("mbm") for event in offered.events):
        raise CastmatesError("resctrl counts no memory traffic here")
    cpu, size = _place(topology)
    programs = environments.build(environments.NATIVE, envs, cache) / "bin"
    monitor = choose_monitor(purpose=COMMAND)
    if isinstance(monitor, NoMonitor):
        raise CastmatesError("; ".join(monitor.about().values()))
    with guarded() as warden:
        warden.guard_journal(Journal())
        return under_load(programs, cpu, size, monitor, warden)


def _place(topology: Topology) -> tuple[int, int]:
    """Choose a CPU and find the size of its last-level cache."""
    for llc in topology.llcs:
        for cpu in llc.cpus:
            if cpu in topology.allowed and llc.bytes:
                return cpu, llc.bytes
    raise CastmatesError("sysfs shows no last-level cache of a CPU that may be used")
