"""A step of pmap over the devices that there are, of a function that vmap makes from one for a single example."""

import jax
import jax.numpy as jnp


def single(weights, x, y):
    return (jnp.dot(x, weights) - y) ** 2


def loss(weights, x, y):
    return jnp.mean(jax.vmap(single, in_axes=(None, 0, 0))(weights, x, y))


@jax.pmap
def step(weights, x, y):
    return weights - 0.01 * jax.grad(loss)(weights, x, y)


devices = jax.local_device_count()
weights, x, y = jnp.zeros((devices, 512)), jnp.ones((devices, 256, 512)), jnp.ones((devices, 256))
for _ in range(100_000):
    weights = step(weights, x, y)
