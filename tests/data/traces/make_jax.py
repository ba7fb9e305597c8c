"""Make jax.xplane.pb.gz: two steps of a very small model under JAX's profiler, in the jax environment."""

import gzip
import itertools
import os
import tempfile
from pathlib import Path

os.environ |= {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2", "NPROC": "1"}

import jax
import jax.numpy as jnp
import numpy as np

from castmates.workloads.jaxjobs.tracing import JaxTracer


@jax.jit
def train(weights: list[jax.Array], images: jax.Array) -> list[jax.Array]:
    """A step of gradient descent."""

    def loss(weights: list[jax.Array]) -> jax.Array:
        x = images
        for place, weight in enumerate(weights):
            with jax.named_scope(f"layer{place}"):
                x = jax.nn.relu(x @ weight)
        with jax.named_scope("loss"):
            return -jax.nn.log_softmax(x)[:, 0].mean()

    slopes = jax.grad(loss)(weights)
    with jax.named_scope("optimizer"):
        return jax.tree.map(lambda weight, slope: weight - 0.1 * slope, weights, slopes)


class Job:
    """What a tracer looks at."""

    def __init__(self) -> None:
        dice = np.random.default_rng(1)
        self.batches = itertools.repeat(dice.normal(size=(8, 32)).astype(np.float32))
        self.weights = [jnp.asarray(dice.normal(size=(32, 32)).astype(np.float32)) for _ in range(2)]

    def step(self) -> None:
        """Train on a batch."""
        self.weights = jax.block_until_ready(train(self.weights, next(self.batches)))


job = Job()
for _ in range(3):
    job.step()
tracer = JaxTracer(job)
with tempfile.TemporaryDirectory() as folder:
    tracer.start(Path(folder))
    job.step()
    for number in range(2):
        with tracer.step(number):
            job.step()
    tracer.stop()
    (trace,) = Path(folder).rglob("*.xplane.pb")
    Path(__file__).with_name("jax.xplane.pb.gz").write_bytes(gzip.compress(trace.read_bytes(), 9, mtime=0))
