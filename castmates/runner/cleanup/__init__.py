"""Putting back what a launch changed, also after a kill."""
