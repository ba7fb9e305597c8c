"""Trials: whether masks, counters and workloads do on this machine what they promise."""
