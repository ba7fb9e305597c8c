"""PAPI on the lab's emulated counters: it attaches and inherits there, and what it counts wrong is found out.

The lab's guests see this machine's packages: the test runs where PAPI is installed and knows the guest's processor.
"""

import pytest

from castmates.inside import open_counters, papi
from castmates.trials.counters import by_papi, check
from castmates.trials.counters.tasks import CORE, SOFTWARE
from castmates.workloads.native.build import build, find_compiler


@pytest.fixture
def program(state, tmp_path):
    """Compiled in the guest for its processor; skipped where PAPI counts nothing there."""
    if why := papi.why_not():
        pytest.skip(why)
    build(tmp_path / "bin", find_compiler(), ("known",))
    return tmp_path / "bin" / "known"


@pytest.mark.machines("linux-6.1")
def test_papi_counts_whole_processes_where_the_processor_has_counters(program):
    counters = open_counters(["instructions", "page-faults"], "papi")
    try:
        assert set(counters.names) == {"instructions", "page-faults"}, counters.refused
        assert counters.misses == "", "with counters of the processor it attaches to threads and inherits"
    finally:
        counters.close()


@pytest.mark.machines("linux-6.1")
def test_papi_is_right_about_the_kernels_events_and_wrong_about_the_emulated_ones(program, tmp_path):
    touch = next(trial for trial in SOFTWARE if trial.task == "crew-touch")
    judged = by_papi.try_by_papi(touch, program, tmp_path, None)
    assert judged.verdict == "verified" or "disturbed" in judged.why, judged
    loop = next(trial for trial in CORE if trial.event == "instructions")
    record = check.record_of([check.try_one(loop, program, tmp_path, perf_stat=False)])
    assert record["papi"]["events"] == {"instructions": "wrong"}, record["trials"]
