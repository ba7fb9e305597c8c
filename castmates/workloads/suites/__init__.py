"""Benchmark suites that the user has: what lies in an installation, and the program that runs one of its benchmarks."""
