"""Sampled stacks: read from perf, folded, compared between scenes, and drawn as flame graphs."""
