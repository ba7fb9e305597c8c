"""A table and its estimate in each module; as jobs that only read columns import these, heavy imports are inside."""
