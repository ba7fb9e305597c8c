"""JAX's own first example: layers by hand, a jitted update, batches from NumPy, accuracy after each epoch."""

import itertools

import jax.numpy as jnp
import numpy as np
from jax import grad, jit

rng = np.random.RandomState(0)
sizes = [64, 128, 128, 10]
params = [(0.1 * rng.randn(m, n), 0.1 * rng.randn(n)) for m, n in zip(sizes[:-1], sizes[1:])]
images, labels = rng.randn(512, 64).astype(np.float32), np.eye(10)[rng.randint(0, 10, 512)]


def predict(params, inputs):
    activations = inputs
    for w, b in params[:-1]:
        activations = jnp.tanh(jnp.dot(activations, w) + b)
    w, b = params[-1]
    return jnp.dot(activations, w) + b


def loss(params, batch):
    inputs, targets = batch
    logits = predict(params, inputs)
    return -jnp.mean(jnp.sum((logits - jnp.log(jnp.sum(jnp.exp(logits), axis=1, keepdims=True))) * targets, axis=1))


@jit
def update(params, batch):
    grads = grad(loss)(params, batch)
    return [(w - 0.001 * dw, b - 0.001 * db) for (w, b), (dw, db) in zip(params, grads)]


@jit
def accuracy(params, batch):
    inputs, targets = batch
    return jnp.mean(jnp.argmax(predict(params, inputs), axis=1) == jnp.argmax(targets, axis=1))


for epoch in itertools.count():
    for begin in range(0, 512, 64):
        params = update(params, (images[begin : begin + 64], labels[begin : begin + 64]))
    float(accuracy(params, (images, labels)))
