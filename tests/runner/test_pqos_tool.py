"""However pqos misbehaves, it ends, alone and with all its children, and gives the reason in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.linux.processes import read_process
from castmates.machine import pqos_tool
from castmates.machine.journal import Journal
from castmates.machine.pqos_tool import Pqos, Reading, parse_readings
from castmates.protocols import Held
from castmates.rdt.pqos.monitor import PqosMonitor, samples_of
from castmates.rdt.pqos.session import PqosSession
from tests.unit.rdt.pqos_machine import Tool
from tests.waiting import wait_for

RECORDED = Path(__file__).resolve().parents[1] / "data/pqos/csv-cores.txt"


def stand_in(folder, text):
    """A program in place of pqos."""
    file = folder / "pqos"
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)
    return Pqos("msr", str(file), folder / "lock")


def await_end(pid):
    wait_for(lambda: (found := read_process(pid)) is None or not found.alive, f"process {pid} has ended")


def lines_of(file):
    return file.read_text().splitlines() if file.exists() else []


def test_the_interface_is_named_in_every_call_and_nothing_leaks_in(tmp_path, monkeypatch):
    monkeypatch.setenv("RDT_IFACE", "OS")
    said = stand_in(tmp_path, 'echo "$@ $RDT_IFACE $HOME"').call("-s", "-x")
    assert said == "--iface=msr -s -x MSR \n"


def test_a_refusal_is_one_sentence(tmp_path):
    tool = stand_in(tmp_path, "echo NOTE: x; echo 'ERROR: no such mask!' >&2; exit 1")
    with pytest.raises(CastmatesError, match=r"^pqos -e a failed \(exit 1\): no such mask\.$"):
        tool.call("-e", "a")


def test_one_that_hangs_is_killed_with_its_children(tmp_path):
    tool = stand_in(tmp_path, f"trap '' TERM INT\nsleep 100 & echo $! > {tmp_path}/child\nsleep 100")
    with pytest.raises(CastmatesError, match="did not end within 1 s and was killed"):
        tool.call("-s", timeout_s=1)
    await_end(int((tmp_path / "child").read_text()))


def test_a_child_that_stays_behind_keeps_nobody_waiting(tmp_path):
    endless = "while :; do sleep 0.05; done"
    tool = stand_in(tmp_path, f"{endless} & echo $! > {tmp_path}/child\necho done")
    assert tool.call("-s") == "done\n"
    await_end(int((tmp_path / "child").read_text()))


def test_only_one_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(pqos_tool, "LOCK_S", 0.3)
    tool = stand_in(tmp_path, "echo done")
    with tool.alone(), pytest.raises(CastmatesError, match="another pqos of castmates"):
        tool.call("-s")
    assert tool.call("-s") == "done\n"


def test_no_pqos_is_told(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CastmatesError, match="there is no program 'pqos' here"):
        Pqos("msr")


def test_it_ends_with_whoever_started_it(tmp_path):
    stand_in(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 100")
    code = (
        "import sys, tempfile, time\nfrom castmates.machine.pqos_tool import Pqos\nfrom pathlib import Path\n"
        f"f = tempfile.TemporaryFile()\nPqos('msr', '{tmp_path}/pqos', Path('{tmp_path}/lock')).start(f, f)\n"
        "time.sleep(100)"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.getcwd()})  # noqa: PTH109
    try:
        wait_for(lambda: lines_of(tmp_path / "pid"), "pqos has started")
    finally:
        starter.kill()
        starter.wait()
    await_end(int((tmp_path / "pid").read_text()))


MONITOR = """
trap 'kill $!; exit 0' INT
if [[ " $* " == *" -m "* ]]; then
  echo "$@" >> {folder}/asked
  cat {recorded}
  [ -e {folder}/fails ] && { echo 'ERROR: Monitoring start error on core(s) 0' >&2; echo $$ > {folder}/fails; exit 1; }
  sleep 100 &
  echo >> {folder}/told; wait
fi
"""


class Answers(Tool):
    """The invented machine, but its series come from a real process."""

    def __init__(self, tool):
        super().__init__()
        self._tool = tool
        self.start, self.alone = tool.start, tool.alone

    def call(self, *words):
        with self._tool.alone():
            return super().call(*words)


@pytest.fixture
def monitor(tmp_path, monkeypatch):
    monkeypatch.setattr("castmates.rdt.pqos.session.refuse_beside_others", lambda: None)
    text = MONITOR.replace("{folder}", str(tmp_path)).replace("{recorded}", str(RECORDED))
    session = PqosSession(Answers(stand_in(tmp_path, text)), Journal(tmp_path / "state"), say=print)
    one = PqosMonitor(session, rate=1.0)
    one.attach({"lead@0": Held(1, (0,)), "stream@1": Held(2, (1,))})
    yield one
    one.close()


def test_a_series_runs_as_long_as_it_is_wanted(monitor, tmp_path):
    monitor.start()
    wait_for(lambda: len(lines_of(tmp_path / "told")) == 1, "the series has been written")
    samples = monitor.stop()
    assert (tmp_path / "asked").read_text().split() == [
        "--iface=msr", "-u", "csv", "-i", "10", "-t", "86400", "-m", "llc:0-1",
    ]  # fmt: skip
    series = [one.value for one in samples if one.subject == "stream@1" and one.metric == "llc_occupancy"]
    assert series == [3200 * 1024, 11008 * 1024, 7936 * 1024, 11648 * 1024]
    assert monitor.stop() == []


def test_a_series_steps_aside_for_every_other_call(monitor, tmp_path):
    monitor.start()
    wait_for(lambda: len(lines_of(tmp_path / "told")) == 1, "the series has been written")
    assert monitor.session.state().masks
    wait_for(lambda: len(lines_of(tmp_path / "told")) == 2, "another series has been written")
    samples = [one for one in monitor.stop() if one.subject == "lead@0" and one.metric == "llc_occupancy"]
    assert len(samples) == 8  # of two
    assert [one.t_ns for one in samples] == sorted(one.t_ns for one in samples)


def test_one_that_ends_by_itself_is_an_error(monitor, tmp_path):
    (tmp_path / "fails").touch()
    monitor.start()
    wait_for(lambda: lines_of(tmp_path / "fails"), "pqos complains")
    await_end(int((tmp_path / "fails").read_text()))
    with pytest.raises(CastmatesError, match=r"ended by itself .*Monitoring start error on core"):
        monitor.stop()


def test_a_zero_is_no_number_and_the_first_line_has_no_bandwidth():
    samples = samples_of(parse_readings(RECORDED.read_text()), {0: "lead@0", 1: "stream@1"}, (10**9, 10**10), rate=1.0)
    lead = {(one.t_ns, one.metric): (one.value, one.note) for one in samples if one.subject == "lead@0"}
    assert lead[10**9, "llc_occupancy"][0] is None
    assert "also what it shows where the hardware has no count" in lead[10**9, "llc_occupancy"][1]
    assert (10**9, "mbm_total") not in lead
    assert lead[2 * 10**9, "mbm_total"] == (265.2 * 2**20, "")
    assert lead[2 * 10**9, "llc_occupancy"] == (6336.0 * 1024, "")


def test_a_member_on_several_cpus_is_their_sum_and_one_on_a_shared_cpu_is_nobody():
    rows = [Reading("t", cpu, {"LLC[KB]": 10.0}) for cpu in ("0", "1", "2")]
    samples = samples_of(rows, {0: "lead@0-1", 1: "lead@0-1", 2: "cpu2"}, (0, 10**9), 10.0)
    assert {one.subject: one.value for one in samples} == {"lead@0-1": 20480.0, "cpu2": 10240.0}


def test_a_last_look_that_was_cut_short_is_no_sum_of_the_cpus_it_got_to():
    rows = [Reading("t", cpu, {"LLC[KB]": 10.0}) for cpu in ("0", "1", "0")]
    samples = samples_of(rows, {0: "lead@0-1", 1: "lead@0-1"}, (0, 10**9), 10.0)
    assert [one.value for one in samples] == [20480.0, None]
    assert "did not list all its CPUs" in samples[1].note


def test_a_lock_that_another_user_made_serves_and_one_that_cannot_be_used_is_a_sentence(tmp_path):
    tmp_path.chmod(0o1777)
    lock = tmp_path / "lock"
    lock.touch(0o666)
    if os.geteuid() == 0:
        os.chown(lock, 65534, 65534)
    tool = stand_in(tmp_path, "echo there")
    assert tool.call("-s") == "there\n"
    lock.unlink()
    lock.mkdir()
    with pytest.raises(CastmatesError, match="lock"):
        tool.call("-s")


def test_who_shares_a_cpu_is_not_named(monitor):
    monitor.attach({"lead@0": Held(1, (0,)), "a@1": Held(2, (1,)), "b@1": Held(3, (1,))})
    assert monitor._subjects == {0: "lead@0", 1: "cpu1"}
