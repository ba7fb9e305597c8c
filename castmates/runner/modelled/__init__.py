"""A modelled machine: members on caches and memories that are known exactly (docs/modelled-machine.md)."""
