"""Counters, read at the edges of a window."""
