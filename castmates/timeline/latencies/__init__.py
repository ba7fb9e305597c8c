"""Sampled loads with their latencies, from PEBS, IBS or SPE. Not tried on real hardware."""
