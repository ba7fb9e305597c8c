"""Top-Down by perf's own metrics."""
