"""The logarithm of a slowdown -> the loss in per cent of the rate alone, and back, without pandas."""

import math


def loss_pct(log: float) -> float:
    """What is lost of the rate."""
    return -100 * math.expm1(-log)


def log_of(pct: float) -> float:
    """The logarithm of the slowdown."""
    return -math.log1p(-pct / 100)
