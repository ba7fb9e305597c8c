"""PyTorch jobs; run inside the `torch` environment."""
