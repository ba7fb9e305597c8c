"""The trial of known losses on this machine: few short launches, in which nothing is rejected."""

import json
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import psutil
import pytest

from benchmarks.truth_job import PAGE
from castmates.files import memory_folder
from castmates.linux.processes import cpu_ns_of_process
from castmates.trials import known_losses
from castmates.workloads.heartbeat import Reader, State, create
from tests.runner.programs import run, start
from tests.unit.test_help import ask
from tests.waiting import PATIENCE, wait_for

NOTHING_REJECTED = {"steal": "100%", "foreign": "100%", "neighbours": "100%", "silence": "100%"}


@pytest.mark.usefixtures("mark")
@pytest.mark.needs("two-cpus")
@pytest.mark.quiet
def test_a_tax_of_a_fifth_is_found_and_the_exit_status_says_so(cache, tmp_path, monkeypatch):
    budget = {"launches": 3, "rounds": 2, "window": 0.2, "antagonists_alone": False}
    monkeypatch.setattr(known_losses, "LOSSES", (0.0, 0.2))
    monkeypatch.setattr(
        known_losses, "SHORT", {"budget": budget, "limits": NOTHING_REJECTED, "counters": {"cost_pairs": 0}}
    )

    seen: list[float] = []

    def tried():
        done = ask("doctor", "--truth", "--minutes", "0", "--format", "json")
        assert done.stdout, done.exception
        record = json.loads(done.stdout)
        assert [row["known"] for row in record["losses"]] == [0, 20]
        assert record["launches"] == 3
        assert (done.exit_code, str(done.exception or "")) == (
            (0, "") if record["verdict"] == "found" else (1, record["said"])
        )
        none, fifth = (row["loss"] for row in record["losses"])
        seen.append(fifth - none)
        return abs(median(seen) - 20) < 5  # where others run beside it, not at once

    wait_for(tried, "a tax of 20 % is found", lambda: seen)
    assert not list(Path(tmp_path).glob("castmates-*"))


@pytest.mark.usefixtures("mark")
@pytest.mark.needs("two-cpus")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_leaves_nothing_however_it_is_ended(number, cache, tmp_path):
    words = [sys.executable, "-m", "castmates", "doctor", "--truth"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        family = psutil.Process(running.pid)
        try:
            wait_for(lambda: any(one.name() == "taxed" for one in family.children(recursive=True)), "the lead runs")
            started = family.children(recursive=True)
            running.send_signal(number)
            _, said = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert running.returncode != 0
    assert "Traceback" not in said
    shared = Path(memory_folder() or tmp_path)
    left = [(tmp_path, "castmates-*"), (shared, f"castmates-{running.pid}-*")]
    wait_for(lambda: not any(list(place.glob(name)) for place, name in left), "no folder is left")
    wait_for(lambda: not any(one.is_running() for one in started), "nobody is left")


def test_the_lead_pays_what_is_asked_for_in_work_per_second_of_cpu(kernels, tmp_path):
    """Whatever else runs here: a neighbour that asks at all times, for nothing and for a fifth in turns."""
    create(tmp_path / "beats")
    page = tmp_path / "page"
    page.write_bytes(PAGE.pack(2**62, 0.0, 0, 0, 0))
    lead = start([kernels / "taxed"], tmp_path / "beats", CASTMATES_TAX=str(page))
    try:
        with Reader(tmp_path / "beats") as reader, page.open("r+b", buffering=0) as file:
            wait_for(lambda: reader.state is State.READY, "the lead is ready")

            def rate(loss: float) -> float:
                file.seek(8)
                file.write(struct.pack("d", loss))
                begun, head = cpu_ns(lead), reader.head
                wait_for(lambda: cpu_ns(lead) - begun > 3e8, "it works")
                records = reader.beats(head).records
                return (records[-1][1] - records[0][1]) / (cpu_ns(lead) - begun)

            ratios = [rate(0.2) / rate(0.0) for _ in range(5)]
    finally:
        lead.terminate()
        lead.communicate()
    assert median(ratios) == pytest.approx(0.8, abs=0.02)


def cpu_ns(program: subprocess.Popen[str]) -> int:
    spent = cpu_ns_of_process(program.pid)
    assert spent is not None
    return spent


@pytest.mark.parametrize("way", [[], ["--sleep"]])
def test_who_asks_says_so_while_it_runs(kernels, tmp_path, way):
    program = start([kernels / "tax", "--loss", "5%", *way], CASTMATES_TAX=str(tmp_path / "page"))
    try:
        wait_for(lambda: (tmp_path / "page").is_file() and (tmp_path / "page").stat().st_size, "the page is there")
        wait_for(lambda: time.monotonic_ns() - asked(tmp_path / "page")[0] < 1e8, "it asks")
        assert asked(tmp_path / "page")[1] == 0.05
    finally:
        program.terminate()
        program.communicate()
    assert program.returncode == 0


def asked(page: Path) -> tuple[int, float]:
    moment, loss, *_ = PAGE.unpack(page.read_bytes())
    return moment, loss


@pytest.mark.parametrize("words", ["--loss 5", "--loss 100%", "--loss", "--rate 3"])
def test_a_tax_that_cannot_be_is_one_sentence(kernels, words):
    status, out, said = run([kernels / "tax", *words.split()])
    assert (status, out, said.count("\n")) == (2, "", 1)
    assert "--loss" in said
