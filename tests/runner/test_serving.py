"""Jobs of each framework, really answering requests: their schedule is the seed's, and a stall is seen in full."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from castmates.files import cache_folder
from castmates.runner.processes.member_log import RequestLog
from castmates.workloads import environments
from castmates.workloads.heartbeat import Reader, State, create
from tests.waiting import PATIENCE, wait_for

ENVS, CACHE = Path(__file__).parents[2] / "envs", cache_folder()
LOAD, SEED, STALL_S = 40, 7, 0.4
JOBS = {
    "torch": "castmates.workloads.torchjobs --model dlrm",
    "jax": "castmates.workloads.jaxjobs --model mlp",
    "tfmodels": "castmates.workloads.tfmodels --model mobilenetv2 --batch 1",
}

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", JOBS)
def test_what_is_due_in_a_stall_has_waited_for_its_end(name, tmp_path):
    create(tmp_path / "beats")
    log = RequestLog.create(tmp_path / "requests")
    inside = environments.environment_of(environments.build(name, ENVS, CACHE))
    path = os.pathsep.join([inside["PATH"], os.environ["PATH"]])
    variables = inside | {"PATH": path, "CASTMATES_HEARTBEAT": str(tmp_path / "beats")} | log.variables
    words = f"{JOBS[name]} --mode infer --threads 1 --steps 120 --load {LOAD} --arrivals {SEED}"
    with subprocess.Popen(
        ["python", "-P", "-m", *words.split()], env=variables, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        # At the first one: the schedule lasts for seconds, however slow the job is.
        wait_for(lambda: log._file.head > 0 or process.poll() is not None, "a request is answered")
        process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic_ns()
        time.sleep(STALL_S)
        gone_on = time.monotonic_ns()
        process.send_signal(signal.SIGCONT)
        _, complaints = process.communicate(timeout=4 * PATIENCE)
    assert process.returncode == 0, complaints
    log.read()
    due, sent, answered = log.records().astype(np.int64).T
    draw = random.Random(SEED)
    gaps = np.array([draw.expovariate(LOAD) * 1e9 for _ in due])
    assert np.abs(np.diff(due) - gaps[1:]).max() <= 2, "the schedule depends on nothing that the job does"
    # Stopped by a signal that comes a moment later.
    in_it = (due > stopped + 0.1e9) & (due < gone_on)
    assert in_it.sum() >= 3
    assert (answered[in_it] > gone_on).all()
    assert ((answered - due)[in_it] >= gone_on - due[in_it]).all()
    assert (sent >= due).all()
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FINISHED
        assert reader.beats().records[-1][1] == len(due) == 120
