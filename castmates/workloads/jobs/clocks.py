"""Reads two clocks at one moment (standard library)."""

import time

TRIES = 5


def clock_pair() -> tuple[int, int, int]:
    """The steady and the real clock at one moment, and how far apart they may have been read: all in nanoseconds.

    Of a few tries the closest one; the first may have been interrupted.
    """
    tries = []
    for _ in range(TRIES):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        tries.append((after - before, (before + after) // 2, real))
    bracket, steady, real = min(tries)
    return steady, real, bracket
