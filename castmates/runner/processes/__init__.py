"""A launch's processes: starting, freezing, reading what they write."""
