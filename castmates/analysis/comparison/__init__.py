"""Two studies beside each other."""
