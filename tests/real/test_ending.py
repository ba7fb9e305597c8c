"""A Model Garden job ends when it is asked to, without TensorFlow."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from castmates.workloads import heartbeat
from tests.waiting import PATIENCE

REPOSITORY = Path(__file__).parents[2]


def test_sigterm_ends_a_job_also_inside_a_long_step(tmp_path):
    beats = tmp_path / "beats"
    heartbeat.create(beats)
    # A call that lasts for minutes, gives the interpreter's lock back and that no signal interrupts: as a step does.
    code = (
        "import hashlib; from castmates.workloads.heartbeat import Writer\n"
        "from castmates.workloads.tfmodels.ending import Ending\n"
        "ending = Ending(Writer.from_environment()); print('in', flush=True)\n"
        "hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)"
    )
    variables = os.environ | {"CASTMATES_HEARTBEAT": str(beats), "PYTHONPATH": str(REPOSITORY)}
    job = subprocess.Popen([sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE, text=True)
    try:
        assert job.stdout.readline() == "in\n"
        job.send_signal(signal.SIGTERM)
        assert job.wait(timeout=PATIENCE) == 0
    finally:
        job.kill()
        job.wait()
    with heartbeat.Reader(beats) as reader:
        assert reader.state is heartbeat.State.FINISHED
