"""A trial that shows whether way masks do something on this machine."""
