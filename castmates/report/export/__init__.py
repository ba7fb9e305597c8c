"""A study's numbers for other programs: events for TensorBoard, tables as JSON."""
