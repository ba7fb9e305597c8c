"""Shares of the cache: amounts, sweeps, partitions."""
