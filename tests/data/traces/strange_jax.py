"""A program of JAX that knows nothing of Castmates, under JAX's profiler: gradients, updates, and a sort.

`python strange_jax.py FILE` leaves the trace. What is in it, strange_jax.json has as TensorFlow's own reader of XSpaces
counts it: `python strange_jax.py FILE count`, where TensorFlow is installed.
"""

import gzip
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

FILE = Path(sys.argv[1])


def record():
    import jax
    import jax.numpy as jnp

    def loss(weights, inputs):
        for weight in weights:
            inputs = jnp.tanh(inputs @ weight)
        return jnp.mean(inputs**2)

    @jax.jit
    def update(weights, inputs):
        return jax.tree.map(lambda weight, change: weight - 0.01 * change, weights, jax.grad(loss)(weights, inputs))

    @jax.jit
    def ordered(inputs):
        return jnp.sort(inputs, axis=0)

    key = jax.random.PRNGKey(0)
    weights = [jax.random.normal(key, (128, 128)) for _ in range(2)]
    inputs, numbers = jax.random.normal(key, (64, 128)), jax.random.normal(key, (2000,))
    jax.block_until_ready([update(weights, inputs), ordered(numbers)])
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder, profiler_options=options)
        for number in range(3):
            with jax.profiler.StepTraceAnnotation("my_step", step_num=number):
                weights = jax.block_until_ready(update(weights, inputs))
                jax.block_until_ready(ordered(numbers))
        jax.profiler.stop_trace()
        (trace,) = Path(folder).rglob("*.xplane.pb")
        FILE.write_bytes(gzip.compress(trace.read_bytes(), 9, mtime=0))


def count():
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    calls, picoseconds, steps = Counter(), Counter(), []
    for plane in xplane_pb2.XSpace.FromString(gzip.decompress(FILE.read_bytes())).planes:
        names = {number: stat.name for number, stat in plane.stat_metadata.items()}
        for event in (event for line in plane.lines for event in line.events):
            stats = {names[stat.metadata_id]: stat for stat in event.stats}
            if "hlo_op" in stats:
                words = [names[stats[name].ref_value] for name in ("hlo_module", "hlo_op")]
                calls[" ".join(words)] += 1
                picoseconds[" ".join(words)] += event.duration_ps
            if "step_num" in stats:
                steps.append(stats["step_num"].int64_value)
    operations = {name: [calls[name], picoseconds[name]] for name in sorted(calls)}
    print(json.dumps({"steps": sorted(steps), "operations": operations}, indent=1))


count() if sys.argv[2:] == ["count"] else record()
