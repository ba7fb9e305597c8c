"""PAPI on the lab's emulated counters: it attaches and inherits there, counts phases, and its wrong counts are found.

python_papi's PAPI 6.0, which envs/dev.lock has, knows the Skylake; of the Ice Lake only Debian's PAPI 7.0 does.
"""

import mmap
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from castmates.inside import open_counters, papi
from castmates.trials.counters import methods, table
from castmates.trials.counters.program import CORE, SOFTWARE
from castmates.workloads.phase_counts import PhaseCounts
from castmates.workloads.phase_file import BY_PAPI, COUNTED, METHOD_VARIABLE

LIBRARIES = {"skylake": "python_papi's PAPI (6.0)", "linux-6.1": "the system's PAPI (7.0)"}
PAGES = 200
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


@pytest.fixture
def library(machine, programs):
    """Which PAPI counts in this guest; the first one that knows the processor is taken."""
    PARANOID.write_text("2")
    assert papi.why_not() is None
    return papi._library()[2]


def touch(pages=PAGES):
    """Cause so many page faults, at least."""
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        for page in range(pages):
            memory[page * mmap.PAGESIZE] = 1


@pytest.mark.machines(*LIBRARIES)
def test_papi_counts_whole_processes_where_the_processor_has_counters(machine, library):
    assert library == LIBRARIES[machine.name]
    counters = open_counters(["instructions", "page-faults"], "papi")
    try:
        assert set(counters.names) == {"instructions", "page-faults"}, counters.refused
        assert counters.misses == "", "with counters of the processor it attaches to threads and inherits"
        before = dict(zip(counters.names, counters.read(), strict=True))
        thread = threading.Thread(target=touch)
        thread.start()
        thread.join()
        subprocess.run(["true"], check=True)
        after = dict(zip(counters.names, counters.read(), strict=True))
        assert after["page-faults"] - before["page-faults"] >= PAGES, "a thread that was started later is counted"
        assert after["instructions"] > before["instructions"]
    finally:
        counters.close()


@pytest.mark.machines("skylake")
def test_papi_gives_up_at_debians_default_and_the_reason_says_so(programs):
    PARANOID.write_text("3")
    asked = [sys.executable, "-c", "from castmates.inside import papi; print(papi.why_not())"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said.count("gives up where kernel.perf_event_paranoid is 3") == 2  # the package's and the system's
    assert "does not know this processor" not in said


@pytest.mark.machines(*LIBRARIES)
def test_papi_counts_phases_where_it_is_chosen(machine, library, monkeypatch):
    monkeypatch.setenv(METHOD_VARIABLE, "papi")
    told = {}
    counts = PhaseCounts(["page-faults", "instructions"], lambda event, *state: told.update({event: state}))
    assert told == {0: (COUNTED, BY_PAPI), 1: (COUNTED, BY_PAPI)}
    before = counts.read()
    touch()
    faults, instructions = (now - then for now, then in zip(counts.read(), before, strict=True))
    assert PAGES <= faults < PAGES + 100
    assert instructions > 0


@pytest.mark.machines("skylake")
def test_papi_is_right_about_the_kernels_events_and_wrong_about_the_emulated_ones(library, compiled, state, tmp_path):
    known = compiled / "known"
    touched = next(trial for trial in SOFTWARE if trial.task == "crew-touch")
    judged = methods.try_by_papi(touched, known, tmp_path, None)
    assert judged.verdict == "verified" or "disturbed" in judged.why, judged
    loop = next(trial for trial in CORE if trial.event == "instructions")
    record = table.record_of([table.try_one(loop, known, tmp_path, perf_stat=False)])
    assert record["papi"]["events"] == {"instructions": "wrong"}, record["trials"]
