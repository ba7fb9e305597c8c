"""Which member sits on which CPUs."""
