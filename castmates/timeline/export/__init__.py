"""A timeline as one file that other programs open."""
