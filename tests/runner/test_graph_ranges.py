"""Ranges inside a real TensorFlow function, and those of their gradients."""

import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from castmates.workloads import environments
from tests.runner.test_tfmodels import CACHE, ENVS
from tests.unit.phases.written_ranges import create, heard

pytestmark = pytest.mark.tensorflow
ROOT = Path(__file__).parents[2]
STEPS = 3
JOB = """
import json, os
import tensorflow as tf
from castmates.workloads import phases
from castmates.workloads.tfmodels.graph_ranges import GraphRange, write

def run():
    tf.random.set_seed(1)
    weights, table = tf.Variable(tf.random.normal([256, 256])), tf.Variable(tf.random.normal([100, 256]))
    lookup, dense = GraphRange("lookup"), GraphRange("dense", gradient="dense backward")

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows = lookup.end(tf.gather(lookup.begin(tf.convert_to_tensor(table)), ids))
            loss = tf.reduce_mean(dense.around(lambda tensor: tf.nn.relu(tensor @ weights))(rows))
        gradients = tape.gradient(loss, [weights, table])
        weights.assign_sub(0.1 * gradients[0])
        table.assign_sub(0.1 * tf.convert_to_tensor(gradients[1]))
        return loss

    losses = []
    for number in range(3):
        with phases.phase("step", step=number):
            losses.append(float(step(tf.range(64))))
        write(number)
    nodes = step.get_concrete_function(tf.TensorSpec([64], tf.int32)).graph.as_graph_def().node
    return losses, sum(node.op == "Timestamp" for node in nodes)

file = os.environ.pop("CASTMATES_PHASES")
plain = run()
os.environ["CASTMATES_PHASES"] = file
phases.reopen()
print(json.dumps([plain, run()]))
"""


def test_a_range_in_a_function_has_its_gradients_range_and_changes_no_number(tmp_path):
    reader = create(tmp_path / "file", capacity=64)
    variables = os.environ | environments.environment_of(environments.build("tfmodels", ENVS, CACHE))
    variables |= {"PYTHONPATH": str(ROOT), "CASTMATES_PHASES": str(tmp_path / "file")}
    done = subprocess.run(["python", "-c", JOB], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (plain, no_marks), (marked, marks) = json.loads(done.stdout)
    assert plain == marked
    assert (no_marks, marks) == (0, 8), "without a listener the graph is what it would be"
    found = {(one.path, one.step): one for one in heard(reader)}
    names = ["lookup", "dense", "dense backward", "lookup gradient"]
    assert found.keys() == {(name, step) for name in ("step", *names) for step in range(STEPS)}
    for step in range(STEPS):
        around, *inside = (found[name, step] for name in ("step", *names))
        assert around.type == "phase"
        assert {(one.type, one.domain, one.thread) for one in inside} == {("range", "graph", None)}
        edges = [edge for one in inside for edge in (one.begin_ns, one.end_ns)]
        tolerance = 1_000_000  # the clock of the marks has microseconds, and is the wall's
        assert all(later >= earlier - tolerance for earlier, later in pairwise(edges))
        assert around.begin_ns - tolerance <= edges[0]
        assert edges[-1] <= around.end_ns + tolerance
