"""What perf recorded, as part of a timeline: perf.data is read here, without perf."""
