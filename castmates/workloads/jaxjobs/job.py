"""A JAX job: its model, its data, and one step of it, which is one compiled function."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from castmates.workloads.jaxjobs import models
from castmates.workloads.jaxjobs.tracing import JaxTracer
from castmates.workloads.jobs import data
from castmates.workloads.jobs.asked import Asked, Shape
from castmates.workloads.jobs.tracing import Tracer
from castmates.workloads.phases import phase

BUILDERS = {
    "mlp": (models.mlp_weights, models.mlp, data.images),
    "transformer": (models.transformer_weights, models.transformer, data.tokens),
}
RATE, FADING, SMALL = 3e-4, (0.9, 0.999), 1e-8  # Adam's, after Kingma and Ba 2014


class JaxJob:
    """A model with the state of its optimizer and its batches.

    JAX compiles forward, backward and optimizer into one function, in which their operations are mixed: a step has the
    phases `input` and `compiled`.
    """

    def __init__(self, asked: Asked, shape: Shape) -> None:
        weights, model, dataset = BUILDERS[asked.model]
        self._weights = weights(jax.random.key(asked.seed), shape.details)
        self.parameters = sum(one.size for one in jax.tree.leaves(self._weights))
        self._training = asked.training
        self._moments = [jax.tree.map(jnp.zeros_like, self._weights) for _ in FADING] if asked.training else []
        self._train, self._infer = _compiled(model)
        self.batches: Iterator[data.Batch] = data.batches(
            dataset(shape.details, asked.batch, asked.seed), asked.source, shape.batches
        )
        self._first: data.Batch = ()

    def step(self, number: int) -> float:
        """Make one whole step: the loss of training, or the mean of |outputs| of inference."""
        with phase("input", step=number):
            batch = next(self.batches)
            self._first = self._first or batch
        with phase("compiled", step=number):
            if not self._training:
                return float(self._infer(self._weights, batch[0]))
            self._weights, self._moments, value = self._train(self._weights, self._moments, number + 1, *batch)
            jax.block_until_ready(self._weights)
            return float(value)

    def again(self) -> float:
        """Return what inference makes of its first batch now."""
        return float(self._infer(self._weights, self._first[0]))

    def tracer(self) -> Tracer:
        """Return JAX's profiler."""
        return JaxTracer(self)


def facts() -> dict[str, object]:
    """What decides how JAX computes here."""
    return {"jax": jax.__version__, "backend": jax.default_backend(), "devices": len(jax.devices())}


def _compiled(model: Callable[..., jax.Array]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def infer(weights: models.Weights, inputs: jax.Array) -> jax.Array:
        return jnp.abs(model(weights, inputs)).mean()

    def train(weights: models.Weights, moments: list[Any], number: int, inputs: Any, answers: Any) -> tuple[Any, ...]:
        value, slopes = jax.value_and_grad(lambda one: models.loss(model(one, inputs), answers))(weights)
        return *_adam(weights, moments, slopes, number), value

    return jax.jit(train, donate_argnums=(0, 1)), jax.jit(infer)


@jax.named_scope("optimizer")
def _adam(weights: models.Weights, moments: list[Any], slopes: models.Weights, number: int) -> tuple[Any, list[Any]]:
    """The weights after a step, and their moments."""
    first, second = (
        jax.tree.map(lambda old, new, part=part, power=power: part * old + (1 - part) * new**power, moment, slopes)
        for moment, part, power in zip(moments, FADING, (1, 2), strict=True)
    )
    scales = [1 / (1 - part**number) for part in FADING]
    changed = jax.tree.map(
        lambda weight, one, two: weight - RATE * scales[0] * one / (jnp.sqrt(scales[1] * two) + SMALL),
        weights, first, second,
    )  # fmt: skip
    return changed, [first, second]
