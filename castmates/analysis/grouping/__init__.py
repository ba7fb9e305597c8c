"""Which jobs should share a last-level cache: groups, what they cost, and the best way to divide all jobs into them."""
