"""What the jobs of PyTorch and of JAX have in common: their command line, their data, and the loop of their steps."""
