"""Records of the trial of masks and throttles, for tests."""

GOOD = {"masks": "works", "isolation": "isolated", "throttles": "works", "eviction": "emptied", "traffic": "agrees"}


def trial(**verdicts: str) -> dict[str, object]:
    """A record in which all is well, but for these verdicts."""
    parts = {name: {"verdict": word, "said": f"Of {name}."} for name, word in (GOOD | verdicts).items()}
    return {"at": "2026-01-05T10:00:00+00:00", "parts": parts}
