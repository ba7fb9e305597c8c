"""The graph of a step: its path, the path of its schedule as it ran, and what neighbours change in it. Pure."""
