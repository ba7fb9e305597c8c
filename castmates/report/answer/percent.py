"""How a sentence writes a loss."""

from castmates.english import rounded


def percent(value: float) -> str:
    """A loss without more digits than matter: 46 %, 5.6 %, 5.0 %."""
    return f"{rounded(value)} %"
