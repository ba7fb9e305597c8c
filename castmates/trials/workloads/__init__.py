"""What the runner relies on in a workload: the catalogue as a table, and each promise tried out on this machine."""
