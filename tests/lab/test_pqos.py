"""Debian's real pqos under our driver: it allocates, is read back, monitors, and leaves the processor as it was."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.linux.msr import read_msr
from castmates.machine.journal import journals
from castmates.machine.pqos_tool import Pqos
from castmates.machine.topology import read_topology
from castmates.protocols import Held
from castmates.rdt.choose import CacheRequest, choose
from castmates.rdt.pqos.classes import expected
from castmates.rdt.pqos.monitor import PqosMonitor
from castmates.rdt.pqos.session import PqosAllocator, PqosSession, choose_interface
from castmates.rdt.resctrl.foreign import KernelTasks
from castmates.runner.cleanup.restore import heal
from castmates.study.spec import REST, Share
from tests.lab import guest

CLASS_OF_CPU, MASKS, DELAYS = 0xC8F, 0xC90, 0xD50
FULL, WAY = 0xFFF, 1572864
LEAD, OTHER = "lead@1", "other@0"


@pytest.fixture
def pair(state, programs, crowd):
    """A busy member on CPU 1 and an idle one on CPU 0, as a launch's driver takes them."""
    made = []

    def make():
        made.append(choose(CacheRequest(shares=True, driver="pqos", rate=10)))
        return made[-1]

    with guest.busy(cpu=1) as pid:
        idle = crowd().pid
        for thread in Path(f"/proc/{idle}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {0})
        yield make, {LEAD: Held(pid, (1,)), OTHER: Held(idle, (0,))}
    for allocator, monitor in made:
        monitor.close()
        allocator.restore()
    assert left() == []


def left():
    """What is not as a fresh machine has it: registers of each CPU, mounts, entries of journals."""
    found = [f"{entry.change}" for journal in journals() for entry in journal.entries()]
    found += ["resctrl is mounted"] if guest.is_mounted() else []
    for cpu in range(os.cpu_count()):
        held = [read_msr(cpu, CLASS_OF_CPU) >> 32, *(read_msr(cpu, MASKS + number) for number in range(8))]
        held += [read_msr(cpu, DELAYS + number) for number in range(8)]
        if held != [0, *[FULL] * 8, *[0] * 8]:
            found.append(f"CPU {cpu} has {held}")
    return found


def in_processor(cpu):
    """The mask and the delay that rule a CPU."""
    number = read_msr(cpu, CLASS_OF_CPU) >> 32
    return read_msr(cpu, MASKS + number), read_msr(cpu, DELAYS + number)


@pytest.mark.machines("linux-6.1", "linux-7.2", "two-sockets")
def test_shares_are_in_the_processor_and_are_read_back(pair):
    make, members = pair
    allocator, _ = make()
    assert choose_interface() == "msr"
    allocator.prepare(members)
    assert allocator.about()["allocation"] == "pqos 4.5.0, interface msr, by CPU"
    assert allocator.apply([Share(member=LEAD, ways=0x3, bandwidth=45), Share(member=OTHER, ways=0xFFC)])
    assert (in_processor(1), in_processor(0)) == ((0x3, 50), (0xFFC, 0))
    said = allocator.read_back()
    assert "L3:0=3" in said[LEAD]
    assert "MB:0=50" in said[LEAD]
    assert "L3:0=ffc" in said[OTHER]
    assert allocator.misplaced() == []
    last = os.cpu_count() - 1
    assert in_processor(last) == (FULL, 0)
    allocator.apply([Share(member=REST, ways=0xF0)])
    assert (in_processor(1), in_processor(2)[0]) == ((FULL, 0), 0xF0 if len(read_topology().llcs) == 1 else FULL)
    allocator.restore()
    assert left() == []


@pytest.mark.machines("linux-6.1")
def test_what_a_plan_expects_is_what_pqos_shows(pair):
    make, members = pair
    allocator, _ = make()
    allocator.prepare(members)
    shown, planned = allocator.session.cache, expected(read_topology())
    assert (shown.ways, shown.way_bytes, shown.domains) == (12, WAY, (0,))
    for field in ("ways", "way_bytes", "domains", "least_ways", "groups", "cdp", "bandwidth"):
        assert getattr(planned, field) == getattr(shown, field), field
    assert set(planned.events) == set(shown.events)


@pytest.mark.machines("linux-6.1", "linux-7.2")
def test_readings_show_who_uses_the_cache_and_follow_the_masks(pair):
    make, members = pair
    allocator, monitor = make()
    allocator.prepare(members)
    monitor.attach(members)
    allocator.apply([Share(member=LEAD, ways=0x3)])
    samples = series(monitor, 3)
    assert {sample.metric for sample in samples} == {"llc_occupancy", "mbm_total", "mbm_local"}
    occupied = values(samples, LEAD, "llc_occupancy")
    assert 0 < occupied[-1] <= 2 * WAY
    assert max(values(samples, LEAD, "mbm_total")) > max(values(samples, LEAD, "mbm_local")) > 0
    allocator.apply([])
    assert values(series(monitor, 3), LEAD, "llc_occupancy")[-1] > 2 * WAY


@pytest.mark.machines("linux-6.1")
def test_reading_masks_back_interrupts_a_series_and_does_not_end_it(pair):
    make, members = pair
    allocator, monitor = make()
    allocator.prepare(members)
    monitor.attach(members)
    monitor.start()
    time.sleep(1.5)
    assert "L3:0=fff" in allocator.read_back()[LEAD]
    time.sleep(1.5)
    samples = monitor.stop()
    assert len(values(samples, LEAD, "llc_occupancy")) > 4
    assert [sample.t_ns for sample in samples if sample.metric == "mbm_total"]


@pytest.mark.machines("linux-6.1", "linux-7.2")
def test_by_the_kernels_interface_its_mount_and_its_groups_are_taken_back(pair):
    _, members = pair
    session = PqosSession(Pqos("os"))
    allocator, monitor = PqosAllocator(session, KernelTasks()), PqosMonitor(session, 10)
    allocator.prepare(members)
    assert guest.is_mounted()
    assert allocator.apply([Share(member=LEAD, ways=0xF)])
    assert in_processor(1)[0] == 0xF
    assert "L3:0=f" in allocator.read_back()[LEAD]
    monitor.attach(members)
    assert max(values(series(monitor, 3), LEAD, "llc_occupancy")) > 0
    monitor.close()
    allocator.restore()
    assert left() == []


@pytest.mark.machines("linux-6.1")
def test_it_steps_back_for_others(pair, programs):
    make, members = pair
    guest.mount()
    try:
        with pytest.raises(CastmatesError, match="resctrl is mounted at /sys/fs/resctrl"):
            make()
    finally:
        guest.unmount()
    subprocess.run(["pqos", "--iface=msr", "-a", "core:2=3"], check=True, capture_output=True)
    allocator, _ = make()
    with pytest.raises(CastmatesError, match="CPU 3 is in a cache class of somebody else"):
        allocator.prepare(members)
    subprocess.run(["pqos", "--iface=msr", "-a", "core:0=3"], check=True, capture_output=True)


@pytest.mark.machines("linux-6.1")
@pytest.mark.parametrize("interface", ["msr", "os"])
def test_what_a_killed_run_left_is_put_back(state, programs, interface):
    _, status = os.waitpid(guest.forked(lambda: put_and_die(interface)), 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    assert in_processor(1)[0] == 0x3
    heal()
    assert left() == []


def put_and_die(interface):
    allocator = PqosAllocator(PqosSession(Pqos(interface)), KernelTasks())
    allocator.prepare({LEAD: Held(os.getpid(), (1,))})
    allocator.apply([Share(member=LEAD, ways=0x3)])
    os.kill(os.getpid(), signal.SIGKILL)


def series(monitor, seconds):
    """Read for so long; longer where a busy host keeps pqos from a second reading, without which there are no rates."""
    for times in range(1, 6):
        monitor.start()
        time.sleep(times * seconds)
        samples = monitor.stop()
        if values(samples, LEAD, "mbm_total"):
            break
    return samples


def values(samples, member, metric):
    return [one.value for one in samples if (one.subject, one.metric) == (member, metric) and one.value is not None]
