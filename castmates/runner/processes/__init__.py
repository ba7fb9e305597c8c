"""A block's processes: starting, freezing, reading what they write."""
