"""What is asked of perf, of which perf, and for whom."""

import json
import os
import subprocess

import pytest

from castmates.counters.topdown.probe import Known, probe, read_json_list, read_text_list, wanted_groups
from castmates.counters.topdown.topdown import group_for_perf, kind_of, scope_of
from castmates.linux.processes import Family
from castmates.protocols import Held
from tests.unit.counters.perf_prints import read

ZEN = {
    name: Known((f"PipelineL{level}",))
    for level, name in ((1, "frontend_bound"), (1, "retiring"), (2, "backend_bound_cpu"))
}
INTEL = [("tma_frontend_bound", "PGO;TmaL1;TopdownL1;tma_L1_group"), ("tma_fetch_latency", "Frontend;TopdownL2"),
         ("tma_l3_bound", "CacheHits;MemoryBound;TmaL3mem;TopdownL3"), ("tma_dram_bound", "MemoryBound;TopdownL3"),
         ("tma_info_system_cpus_utilized", "Summary")]  # fmt: skip


@pytest.fixture
def held():
    """A member that sleeps."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield Held(process.pid, sorted(os.sched_getaffinity(0)))
    process.kill()
    process.wait()


def test_the_groups_that_are_asked_for():
    intel = {name: Known(tuple(groups.split(";"))) for name, groups in INTEL}
    assert wanted_groups(intel, 1, smt=False) == [("TopdownL1",)]
    assert wanted_groups(intel, 2, smt=False) == [("TopdownL1",), ("TopdownL2",), ("tma_l3_bound", "tma_dram_bound")]
    assert wanted_groups(ZEN, 2, smt=True) == [("PipelineL1",), ("PipelineL2",)]
    old = {
        name: Known((f"TopdownL1{smt}",)) for smt in ("", "_SMT") for name in (f"Frontend_Bound{smt}", f"Retiring{smt}")
    }
    assert wanted_groups(old, 1, smt=True) == [("TopdownL1_SMT",)]
    assert wanted_groups(old, 1, smt=False) == [("TopdownL1",)]
    assert wanted_groups({"all_l2_cache_hits": Known(("l2_cache",))}, 2, smt=True) == []


def test_lists_of_metrics_in_json_and_in_text():
    listed = {"MetricGroup": "TopdownL1;tma_L1_group", "MetricName": "tma_retiring", "MetricExpr": "a / b"}
    told = read_json_list(f'[\n{json.dumps(listed | {"ScaleUnit": "100%"})},\n{{"EventName": "cycles"}},\n]')
    assert told == {"tma_retiring": Known(("TopdownL1", "tma_L1_group"), "a / b", "100%")}
    assert read_json_list("Error: unknown option `json'") == {}
    text = "\nMetrics:\n\n  Retiring\n       [Useful work]\n       [UOPS / SLOTS]\n  l2_hits\n       [Hits]\n"
    assert read_text_list(text, {"TopdownL1": ["Retiring"]}) == {
        "Retiring": Known(("TopdownL1",), "UOPS / SLOTS"), "l2_hits": Known(())}  # fmt: skip


PROBED = """#!/bin/sh
out=$(echo "$*" | sed -n 's/.* -o \\([^ ]*\\) .*/\\1/p')
case "$1" in
--version) echo 'perf version 6.8.0' ;;
list) cat {folder}/list ;;
stat)
    case "$*" in
    *task-clock*) echo '{{"counter-value" : "1.0", "event" : "task-clock"}}' >&2 ;;
    *"-M TopdownL1,TopdownL2 "*) cp {folder}/crowded "$out" ;;
    *"-M TopdownL1 "*) cp {folder}/one "$out" ;;
    *) echo 'Error: No permission to enable topdown-mem-bound event.' >&2; exit 255 ;;
    esac ;;
esac
"""


def test_groups_that_do_not_fit_together_have_turns_of_their_own_and_what_fails_is_left_out(tmp_path, held):
    file = tmp_path / "perf"
    file.write_text(PROBED.format(folder=tmp_path))
    file.chmod(0o755)
    (tmp_path / "list").write_text(
        "[" + ",".join(f'{{"MetricName": "{name}", "MetricGroup": "{groups}"}}' for name, groups in INTEL[:2]) + "]"
    )
    one = read("public/trailing-comma.json.txt")
    (tmp_path / "one").write_text(one)
    (tmp_path / "crowded").write_text(one.replace('"pcnt-running" : 100.00', '"pcnt-running" : 50.00'))
    found = probe(2, str(file))
    assert found.turns == (("TopdownL1",),)
    assert found.notes == ("left out: TopdownL2: Error: No permission to enable topdown-mem-bound event.",)
    (tmp_path / "crowded").write_text(one)
    assert probe(2, str(file)).turns == (("TopdownL1", "TopdownL2"),)


@pytest.mark.needs("perf")
def test_the_probe_of_this_machine_ends_in_turns_or_in_a_reason():
    found = probe(1)
    assert bool(found.turns) != bool(found.why_not)
    assert found.version[0].isdigit()


def test_how_perf_is_told_whom_to_count(tmp_path, held):
    family = Family(held.pid)
    cpus = ",".join(map(str, held.cpus)) if len(held.cpus) < 2 else f"{held.cpus[0]}"
    assert scope_of(held, family, "cpu").words[:2] == ("-a", "-C")
    assert scope_of(held, family, "cpu").words[2].startswith(cpus)
    assert "no control group" in scope_of(held, family, "cgroup")
    by_thread = scope_of(held, family, "auto")
    assert by_thread.name == "thread"
    assert by_thread.words == ("-p", str(held.pid))
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text("6:freezer:/x\n0::/castmates-1/lead\n")
    assert group_for_perf(Held(7, [0], "/sys/fs/cgroup/castmates-1/lead"), tmp_path) == "castmates-1/lead"
    assert group_for_perf(Held(7, [0], "/sys/fs/cgroup/freezer/x"), tmp_path) == ""
    assert group_for_perf(Held(7, [0]), tmp_path) == ""
    for kind, cores in (("core", "0-3"), ("atom", "4-7")):
        (tmp_path / f"cpu_{kind}").mkdir()
        (tmp_path / f"cpu_{kind}" / "cpus").write_text(f"{cores}\n")
    assert [kind_of(cpus, tmp_path) for cpus in ([1, 2], [5], [3, 4])] == ["core", "atom", ""]
