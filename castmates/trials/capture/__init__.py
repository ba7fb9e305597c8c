"""What kernel files do not show of a machine is asked of perf, registers and memory, for `castmates doctor --capture`."""
