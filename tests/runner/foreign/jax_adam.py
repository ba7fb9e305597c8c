"""A train step with donated state, its loss read each step; the optimizer in a scope of its name."""

import functools

import jax
import jax.numpy as jnp


def init(key):
    keys = jax.random.split(key, 2)
    return {"up": jax.random.normal(keys[0], (64, 256)) * 0.1, "down": jax.random.normal(keys[1], (256, 64)) * 0.1}


def loss_of(params, x):
    with jax.named_scope("encoder"):
        hidden = jax.nn.gelu(x @ params["up"])
    with jax.named_scope("decoder"):
        return jnp.mean((hidden @ params["down"] - x) ** 2)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, moments, x):
    loss, grads = jax.value_and_grad(loss_of)(params, x)
    with jax.named_scope("optimizer"):
        moments = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, grads)
        params = jax.tree.map(lambda p, m: p - 1e-3 * m, params, moments)
    return params, moments, loss


key = jax.random.key(0)
params = init(key)
moments = jax.tree.map(jnp.zeros_like, params)
losses = []
while True:
    key, batch_key = jax.random.split(key)
    params, moments, loss = train_step(params, moments, jax.random.normal(batch_key, (128, 64)))
    losses.append(float(loss))
