"""What kernel files do not show of a machine, asked of perf, registers and memory for `castmates doctor --capture`."""
