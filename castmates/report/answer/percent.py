"""How a sentence writes a loss."""

from castmates.report.text.words import number

WHOLE = 9.95  # from here on without decimals


def percent(value: float) -> str:
    """A loss without more digits than matter: 46 %, 5.6 %."""
    return f"{number(value, 0 if abs(value) >= WHOLE else 1)} %"
