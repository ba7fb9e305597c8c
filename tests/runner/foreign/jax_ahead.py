"""The step is exported, compiled ahead of the loop, and called as the program that came of it."""

import copy

import jax
import jax.numpy as jnp
from jax import export


def step(state, x):
    matrix = state["matrix"]
    return {
        "matrix": matrix - 0.01 * jax.grad(lambda m: jnp.mean((x @ m - x) ** 2))(matrix),
        "count": state["count"] + 1,
    }


state = {"matrix": jnp.zeros((128, 128)), "count": jnp.int32(0)}
x = jax.random.normal(jax.random.key(3), (128, 128))
kept = copy.deepcopy({"step": jax.jit(step), "state": state})
exported = export.export(kept["step"])(kept["state"], x)
assert len(exported.out_avals) == 2
compiled = kept["step"].lower(state, x).compile()
while int(state["count"]) < 100_000:
    state = compiled(state, x)
