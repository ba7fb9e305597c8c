"""The graph of a step: what it needs at least, the critical path as it ran, and what neighbours change in it. Pure."""
