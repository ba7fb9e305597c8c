"""JAX jobs; run inside the `jax` environment."""
