"""CPU quotas of real processes in this machine's control groups: given, proved, counted, and gone afterwards."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from castmates.linux import cgroups, cpu_quota, owner
from castmates.linux.marks import in_child
from castmates.linux.owner import myself
from castmates.machine.journal import Change, Journal
from castmates.runner import staging
from castmates.runner.processes import quotas
from castmates.runner.processes.freezer import choose_freezer
from castmates.runner.rounds.witnesses import IN_FORCE, QUOTA_CHANGED, THROTTLED, QuotaWitness
from castmates.study.spec import Partition, Share
from tests.runner.stage import counter, measured, plan_of, tables, under
from tests.waiting import wait_for

pytestmark = pytest.mark.needs("cpu-quota")

BUSY = "while True: pass"
LEAD, BESIDE = "lead@0", "beside@1"
HALF = Share(member=BESIDE, quota=50, period=10)


class Cohort:
    """As much of a cohort as quotas need."""

    lead = SimpleNamespace(workload="lead")

    def __init__(self, *shares):
        self.scenes = [type("Scene", (), {"shares": shares})]
        self.members = [type("Member", (), {"name": BESIDE, "cpus": (0,)})]


@pytest.fixture
def busy():
    """A process that wants all of a CPU, in its group, bounded by nothing yet."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True, preexec_fn=in_child())
    freezer, guarded = choose_freezer("quota"), []
    made = quotas.room_for(Cohort(HALF), freezer.groups()[0], "a test")
    try:
        freezer.adopt(BESIDE, process.pid)
        made.take_in(Cohort(HALF), freezer.group_of, freezer.stragglers, guarded.append)
        yield made
    finally:
        freezer.close()
        process.wait()
        made.close()
        assert not any(group.exists() for group in guarded), "the groups are gone"


def test_a_quota_holds_a_busy_process_back_and_ends_with_its_scene(busy):
    assert busy.members == [BESIDE]
    assert busy.read_back() == {}
    busy.apply((HALF,))
    assert busy.asked() == busy.read_back() == {BESIDE: "5000 10000"}
    before = busy.throttling()[BESIDE].throttled
    wait_for(lambda: busy.throttling()[BESIDE].throttled > before + 3, "the kernel holds it back")
    busy.apply((Share(member=BESIDE, ways=1),))
    assert (busy.asked(), busy.read_back()) == ({}, {})
    busy.apply((Share(member=BESIDE, quota=1, period=10),))
    assert busy.read_back() == {BESIDE: "1000 10000"}, "the kernel gives no less than a millisecond"


def cpu_seconds(pid):
    """What a process has had of CPUs, by the kernel's own clock of it (CPUCLOCK_SCHED)."""
    return time.clock_gettime(~pid << 3 | 2)


def test_a_member_with_a_fifth_gets_a_fifth(busy):
    """Of the periods in which it had used up its share, so that it does not matter what else this machine does."""
    fifth, periods = Share(member=BESIDE, quota=20, period=50), 40
    (pid,) = cgroups.processes(busy._groups[BESIDE].group)
    busy.apply((fifth,))
    wait_for(lambda: busy.throttling()[BESIDE].throttled > 0, "the kernel holds it back")
    first, begun, took = time.monotonic(), busy.throttling()[BESIDE], cpu_seconds(pid)
    wait_for(lambda: busy.throttling()[BESIDE].throttled >= begun.throttled + periods, "it uses its share up")
    took, ended, seconds = cpu_seconds(pid) - took, busy.throttling()[BESIDE], time.monotonic() - first
    given = 0.20 * 0.050
    # Two periods at the edges, and a tick of 10 ms by which it may overrun.
    assert took >= (ended.throttled - begun.throttled - 2) * given - 0.010
    assert took <= (seconds / 0.050 + 2) * given + 0.010


def test_the_witness_counts_what_was_held_back_and_sees_what_others_change(busy):
    witness = QuotaWitness(lambda: busy)
    busy.apply((HALF,))
    witness.start([BESIDE])
    before = busy.throttling()[BESIDE].throttled
    wait_for(lambda: busy.throttling()[BESIDE].throttled > before + 1, "the kernel holds it back")
    samples = {sample.metric: sample for sample in witness.stop()}
    assert samples[THROTTLED].value > 1
    assert samples[IN_FORCE].note == "5000 10000"
    assert QUOTA_CHANGED not in samples
    witness.start([BESIDE])
    cpu_quota.bound(busy._groups[BESIDE].group, 9000, 10000)
    (changed,) = [sample for sample in witness.stop() if sample.metric == QUOTA_CHANGED]
    assert changed.note == "'5000 10000' was '9000 10000'"


def test_nobody_is_bounded_where_no_scene_has_a_quota():
    made = quotas.room_for(Cohort(Share(member=BESIDE, ways=1)), None, "a test")
    made.take_in(Cohort(Share(member=BESIDE, ways=1)), None, None, None)
    assert (made.members, made.throttling()) == ([], {})


def test_the_kernel_takes_the_weights(busy):
    """The groups are real ones; what their files are called depends on the version."""
    (bounded,) = busy._groups.values()
    both = bounded.group, bounded.group.parent
    quotas.even_out({BESIDE: 3}, lambda _: bounded.group)
    known = {"cpu.weight": 300, "cpu.shares": 3072}
    (file,) = [file for file in known if (bounded.group / file).exists()]
    assert [int((group / file).read_text()) for group in both] == [known[file]] * 2


def test_handing_the_controller_down_is_written_down_and_taken_back(tmp_path, monkeypatch):
    """The file behaves as the kernel's: what is read is a list, what is written has a sign."""
    file, journal = tmp_path / "cgroup.subtree_control", Journal(tmp_path / "state")
    file.write_text("memory pids\n")

    def write(path: Path, text: str) -> None:
        names = set(path.read_text().split())
        path.write_text(" ".join(sorted(names | {text[1:]} if text[0] == "+" else names - {text[1:]})) + "\n")

    monkeypatch.setattr(cpu_quota, "write_kernel", write)
    assert not journal.apply([Change("cpu controller", quotas.KIND, str(file), cpu_quota.OFF, cpu_quota.ON)], "a test")
    assert file.read_text() == "cpu memory pids\n"
    assert [entry.change.new for entry in journal.entries()] == [cpu_quota.ON]
    (undone,) = journal.restore_mine()
    assert (undone.how, file.read_text()) == ("restored", "memory pids\n")


@pytest.mark.needs("two-cpus", "compiler")
def test_a_launch_under_a_quota_is_measured_and_proved(cache, tmp_path, monkeypatch):
    part = Partition(name="quota-10", shares=(Share(member=BESIDE, quota=10, period=10),))
    plan = under(plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache), part)
    stages, made = [], staging.LiveStage.bound
    monkeypatch.setattr(staging.LiveStage, "bound", lambda self, *words: (stages.append(self), made(self, *words))[1])
    record = measured(plan, tmp_path, cache)
    windows, samples = tables(tmp_path, "windows", "samples")
    assert record["status"] == "measured"
    # What else runs on this machine may cost windows; the quota must not.
    assert not windows["reasons"].str.contains("quota").any(), windows[["scene", "reasons"]]
    assert "cpu.max" in record["hardware"]["quotas"]["quotas"]
    assert set(samples.loc[samples["metric"] == IN_FORCE, "note"]) == {"1000 10000"}
    assert THROTTLED in set(samples["metric"])  # how often depends on what else runs
    assert not _own_groups(), "no group is left"
    assert stages[0].quotas.members == []


def _own_groups():
    """The groups of this process: other runs on the machine have theirs."""
    places = [*cgroups.here(cgroups.unified), *cgroups.here(cgroups.cpu_of_version_1)]
    found = [group for place in places for group in place.glob("castmates.*")]
    return [group for group in found if owner.maker_of_group(group.name) == myself()]
