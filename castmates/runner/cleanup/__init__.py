"""Putting back what a block changed, also after a kill."""
