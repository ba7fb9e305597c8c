"""Stacks that perf really samples of a program whose hot function is known."""

import subprocess

import pytest

from castmates.runner.tracing.stacks import arguments, call_graph
from castmates.timeline.flames.profile import ALONE, profile
from castmates.timeline.flames.reading import add_stacks
from castmates.timeline.flames.tree import fold, functions
from castmates.timeline.model import Making, Registry
from castmates.workloads.native.build import find_compiler
from tests.waiting import wait_for

pytestmark = pytest.mark.needs("perf", "compiler", "events")

# It waits for a byte, then spends half a second of CPU time, four fifths of it in `hot`.
PROGRAM = """
#include <stdio.h>
#include <time.h>
static volatile unsigned long sum;
void __attribute__((noinline)) hot(void) { for (long at = 0; at < 400000; at++) sum += at; sum++; }
void __attribute__((noinline)) _ZN3box4coldEi(void) { for (long at = 0; at < 100000; at++) sum += at; sum++; }
void __attribute__((noinline)) work(void) { hot(); _ZN3box4coldEi(); sum++; }
int main(void) {
  getchar();
  while (clock() < CLOCKS_PER_SEC / 2) work();
  return 0;
}
"""


def test_the_hot_function_is_found_below_its_callers(tmp_path):
    source, program, output = tmp_path / "p.c", tmp_path / "p", tmp_path / "perf.data"
    source.write_text(PROGRAM)
    compiler = find_compiler()
    subprocess.run([*compiler, "-O1", "-w", "-fomit-frame-pointer", str(source), "-o", str(program)], check=True)
    running = subprocess.Popen([str(program)], stdin=subprocess.PIPE)
    sampling = None
    try:
        words = arguments([running.pid], output, hz=997, call_graph=call_graph())
        sampling = subprocess.Popen(words)
        wait_for(lambda: output.exists() and output.stat().st_size > 0, "perf to begin")
        running.communicate(b"\n")
        assert running.returncode == 0
        sampling.wait(60)  # it ends with the program
    finally:
        for process in filter(None, (running, sampling)):
            process.kill()
            process.wait()
    making = Making()
    registry = Registry(making)
    told = add_stacks(making, registry, output, {running.pid: "lead@0"})
    assert told["reason"] == ""
    assert told["bytes"] == output.stat().st_size
    (event,) = told["events"]
    assert event == "cpu-clock"
    making.intervals(t0_ns=0, t1_ns=2**62, track=registry.run(), kind="scene", name=ALONE)
    found = profile(making.made(), "lead@0", ALONE)
    assert found.samples > 30
    by_name = {one.name: one.after.samples for one in functions(fold(found, "second"))}
    assert by_name["hot"] > 2 * by_name.get("box::cold", 0)
    assert "box::cold" in by_name
    if call_graph() != "fp":
        whole = found.stacks[found.stacks["stack"].str.endswith("main;work;hot")]
        assert whole["samples"].sum() > 0.9 * by_name["hot"]


def test_files_that_perf_cannot_read_are_a_sentence(tmp_path):
    for name, content in (("foreign", b"no perf.data at all\n" * 50), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        making = Making()
        told = add_stacks(making, Registry(making), tmp_path / name, {})
        assert told["reason"].startswith(f"perf cannot read {name}")
        assert "\n" not in told["reason"]
        assert making.made().stacks.empty
