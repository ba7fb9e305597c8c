"""Prints a digest of the graph of a step, traced with or without AutoGraph; runs in the interpreter of the jobs."""

import hashlib
import re
import sys

from castmates.workloads.tfmodels import runtime, wish

AUTOGRAPH = sys.argv.pop(1) == "autograph"
WANTED = wish.parse()
assert WANTED is not None
runtime.prepare(WANTED.threads, onednn=WANTED.onednn, device=WANTED.device)
runtime.spare(one_job=True)
tf = runtime.tensorflow(WANTED.threads, WANTED.inter_threads)

from castmates.workloads.tfmodels import job, steps  # noqa: E402 (after the runtime's settings)

kept = []
make = tf.function


def function(of, **options):
    kept.append(make(of, **options | {"autograph": AUTOGRAPH}))
    return kept[0]


built = job.build(WANTED)
batch = next(steps.batches(built, WANTED))
tf.function = function
(steps.marked if WANTED.phases else steps.compiled)(built, WANTED)
graph = kept[0].get_concrete_function(batch).graph.as_graph_def()
nodes = [f"{node.name} {node.op} {[*node.input]}" for node in graph.node]
nodes += [f"{node.name} {node.op} {[*node.input]}" for each in graph.library.function for node in each.node_def]
# Functions are numbered in the order of the process.
text = re.sub(r"__(\w+?)_\d+", r"__\1", "\n".join(nodes))
print(len(nodes), hashlib.sha256(text.encode()).hexdigest())
