"""A trial that shows how much memory bandwidth the cores of this machine take together."""
