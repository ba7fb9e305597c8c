"""The doctor's rows on known quirks of this processor and kernel, from the table castmates/machine/quirks.yaml."""

from collections.abc import Mapping
from typing import Any

from castmates.machine import quirks
from castmates.machine.doctor.check import Check

NAME = "known quirks"


def known_quirks(facts: Mapping[str, Any]) -> list[Check]:
    """Return a row for each quirk that no other row shows, or one that there is none."""
    shown = [quirk for quirk in quirks.applicable(facts) if not quirk.row]
    if not shown:
        return [Check(NAME, "yes", "none for this processor and kernel")]
    return [Check(f"{NAME}: {quirk.name}", "partly", quirk.heading(facts), quirk.happens, quirk.do) for quirk in shown]
