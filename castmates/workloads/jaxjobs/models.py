"""The models, in plain JAX: weights are dictionaries of arrays, a model is a function of them.

Scopes name the parts of a model in traces; they change nothing of what is computed.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from castmates.workloads.jobs.data import CLASSES

Weights = dict[str, Any]


def mlp_weights(key: jax.Array, details: Mapping[str, int]) -> Weights:
    """The weights of a network of dense layers."""
    width = details["width"]
    sizes = [3 * details["side"] ** 2, *[width] * details["layers"], CLASSES]
    keys = jax.random.split(key, len(sizes) - 1)
    return {
        f"layer{place}": _dense(one, before, after)
        for place, (one, before, after) in enumerate(zip(keys, sizes, sizes[1:], strict=False))
    }


def mlp(weights: Weights, images: jax.Array) -> jax.Array:
    """Images to a score for each class."""
    x = images.reshape(len(images), -1)
    for place in range(len(weights)):
        with jax.named_scope(f"layer{place}"):
            x = _applied(weights[f"layer{place}"], x if place == 0 else jax.nn.relu(x))
    return x


def transformer_weights(key: jax.Array, details: Mapping[str, int]) -> Weights:
    """The weights of a language model; how many heads it has is seen in the shape of one."""
    width, heads = details["width"], details["heads"]
    keys = iter(jax.random.split(key, 3 + 4 * details["layers"]))
    layers = [
        {
            "norms": jnp.ones((2, width)),
            "mixed": _dense(next(keys), width, 3 * width),
            "out": _dense(next(keys), width, width),
            "wider": _dense(next(keys), width, 4 * width),
            "narrower": _dense(next(keys), 4 * width, width),
            "heads": jnp.ones((heads, 1, 1)),
        }
        for _ in range(details["layers"])
    ]
    return {
        "tokens": jax.random.normal(next(keys), (details["vocabulary"], width)),
        "places": 0.02 * jax.random.normal(next(keys), (details["sequence"], width)),
        "layers": layers,
        "norm": jnp.ones(width),
        "head": _dense(next(keys), width, details["vocabulary"]),
    }


def transformer(weights: Weights, tokens: jax.Array) -> jax.Array:
    """Tokens to a score for each next token; each place sees those before it."""
    with jax.named_scope("embedding"):
        x = weights["tokens"][tokens] + weights["places"]
    for place, layer in enumerate(weights["layers"]):
        with jax.named_scope(f"layer{place}"):
            x = x + _attention(layer, _normed(layer["norms"][0], x))
            inner = jax.nn.gelu(_applied(layer["wider"], _normed(layer["norms"][1], x)))
            x = x + _applied(layer["narrower"], inner)
    with jax.named_scope("head"):
        return _applied(weights["head"], _normed(weights["norm"], x))


@jax.named_scope("loss")
def loss(outputs: jax.Array, answers: jax.Array) -> jax.Array:
    """The cross entropy of the answers."""
    chances = jax.nn.log_softmax(outputs)
    return -jnp.take_along_axis(chances, answers[..., None], axis=-1).mean()


@jax.named_scope("attention")
def _attention(layer: Weights, x: jax.Array) -> jax.Array:
    batch, sequence, width = x.shape
    heads = layer["heads"].shape[0]
    mixed = _applied(layer["mixed"], x).reshape(batch, sequence, 3, heads, width // heads)
    query, key, value = mixed.transpose(2, 0, 3, 1, 4)
    scores = jnp.einsum("bhqd,bhkd->bhqk", query * layer["heads"], key) / (width // heads) ** 0.5
    seen = jnp.where(jnp.tri(sequence, dtype=bool), scores, -jnp.inf)
    found = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(seen), value)
    return _applied(layer["out"], found.transpose(0, 2, 1, 3).reshape(batch, sequence, width))


def _dense(key: jax.Array, before: int, after: int) -> Weights:
    return {"matrix": jax.random.normal(key, (before, after)) / before**0.5, "offset": jnp.zeros(after)}


def _applied(dense: Weights, x: jax.Array) -> jax.Array:
    return x @ dense["matrix"] + dense["offset"]


@jax.named_scope("layer_norm")
def _normed(scale: jax.Array, x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return scale * centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
