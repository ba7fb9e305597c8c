"""The ledger of a whole block in a few numbers, for block.json."""

from collections import Counter
from collections.abc import Sequence

from castmates.runner.rounds.window import Window


def summary(windows: Sequence[Window]) -> dict[str, dict[str, object]]:
    """Windows and rejected ones by kind of scene, and for each kind of reason how many windows it rejected."""
    rejected = [window for window in windows if window.reasons]
    return {
        "windows": dict(Counter(window.scene.kind for window in windows)),
        "rejected": dict(Counter(window.scene.kind for window in rejected)),
        "because": {
            kind: dict(Counter(window.scene.kind for window in rejected if kind in _kinds(window)))
            for kind in sorted({kind for window in rejected for kind in _kinds(window)})
        },
    }


def _kinds(window: Window) -> set[str]:
    return {reason.partition(":")[0] for reason in window.reasons}
