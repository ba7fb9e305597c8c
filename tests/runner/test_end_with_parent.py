"""What is started ends with who started it, also where that one is killed before the child could ask for it."""

import os
import select
import signal
import subprocess
import sys

import pytest

from castmates.linux.end_with_parent import end_with_parent

# Each starts PROGRAM, a script that writes a file, in its own way.
STARTERS = {
    "snakemake": "from castmates.pipeline.snakemake import run; run([program], print)",
    "pqos": "from castmates.machine.pqos_tool import Pqos; Pqos('os', program, Path(program + '.lock')).call('-s')",
    "perf": "from castmates.counters.topdown.process import PerfProcess; PerfProcess(program, [])",
    "member": "from castmates.linux.marks import in_child; subprocess.run([program], preexec_fn=in_child())",
}
# The child reports that it was forked, and goes on to its preparation only when its parent is dead.
STARTER = """
import os, subprocess, sys, time
from pathlib import Path

program, report, starter = sys.argv[1], int(sys.argv[2]), os.getpid()

class Late(subprocess.Popen):
    def __init__(self, *args, preexec_fn, **options):
        def late():
            os.write(report, b"%d\\n" % os.getpid())
            while os.getppid() == starter:
                time.sleep(0.001)
            preexec_fn()
        super().__init__(*args, preexec_fn=late, **options)

subprocess.Popen = Late
"""


@pytest.mark.parametrize("starter", STARTERS)
def test_a_child_whose_parent_died_before_it_asked_ends_too(starter, tmp_path):
    program, trace = tmp_path / "program", tmp_path / "it-ran"
    program.write_text(f"#!/bin/sh\necho > {trace}\n")
    program.chmod(0o755)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as reports:
        words = [sys.executable, "-c", STARTER + STARTERS[starter], str(program), str(writing)]
        parent = subprocess.Popen(words, pass_fds=[writing])
        os.close(writing)
        child = os.pidfd_open(int(reports.readline()))
        parent.kill()
        parent.wait()
        ended, _, _ = select.select([child], [], [], 60)
        os.close(child)
    assert ended
    assert not trace.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_gets_its_signal_when_its_parent_is_killed(number):
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        prepare = end_with_parent(number)
        child = os.fork()
        if child == 0:
            os.setsid()
            prepare()
            os.write(writing, b"%d\n" % os.getpid())
        signal.pause()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as reports:
        child = os.pidfd_open(int(reports.readline()))
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        ended, _, _ = select.select([child], [], [], 60)
    os.close(child)
    assert ended
