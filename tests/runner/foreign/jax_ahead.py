"""The step is compiled ahead of the loop, and called as the program that came of it."""

import jax
import jax.numpy as jnp


def step(state, x):
    matrix = state["matrix"]
    return {
        "matrix": matrix - 0.01 * jax.grad(lambda m: jnp.mean((x @ m - x) ** 2))(matrix),
        "count": state["count"] + 1,
    }


state = {"matrix": jnp.zeros((128, 128)), "count": jnp.int32(0)}
x = jax.random.normal(jax.random.key(3), (128, 128))
compiled = jax.jit(step).lower(state, x).compile()
while int(state["count"]) < 100_000:
    state = compiled(state, x)
