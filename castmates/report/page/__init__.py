"""The page: one file that contains everything."""
