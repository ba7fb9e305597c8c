"""Intervals, pairs, power: statistics that know nothing of studies."""
