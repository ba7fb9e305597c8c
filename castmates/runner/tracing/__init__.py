"""Trace launches: what everybody did in some seconds of each scene, on one clock."""
