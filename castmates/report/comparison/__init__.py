"""The comparison of two studies: page, figure, rows."""
