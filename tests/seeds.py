"""The seed of a run: the same each time, unless CASTMATES_SEED names another one, as the nightly run does."""

import os
import random

SEED = int(os.environ.get("CASTMATES_SEED") or 1)


def chance(name: str, number: int = 0) -> random.Random:
    """Return the random numbers of one course, which pytest shows where its test fails: the name keeps tests apart."""
    print(f"CASTMATES_SEED={SEED} repeats this course ({name} {number})")
    return random.Random(f"{SEED} {name} {number}")
