"""A module per figure, listed in index.py."""
