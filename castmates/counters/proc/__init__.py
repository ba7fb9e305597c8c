"""Collectors that read /proc and /sys at a window's edges."""
