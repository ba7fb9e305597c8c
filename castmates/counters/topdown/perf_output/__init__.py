"""What `perf stat` prints, of every version: JSON (-j) and CSV (-x) -> lines and metrics."""
