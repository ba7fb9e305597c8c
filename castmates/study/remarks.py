"""What a study asks of a machine and does not get, or gets differently: remarks on mixes and on partitions."""

from collections.abc import Iterable

MIXES = "mixes: "  # how remarks on mixes begin; all others are on partitions


def on_mixes(notes: Iterable[str]) -> list[str]:
    """The remarks on mixes, as separate sentences."""
    return [_sentence(note.removeprefix(MIXES)) for note in notes if note.startswith(MIXES)]


def on_partitions(notes: Iterable[str]) -> list[str]:
    """The remarks on partitions."""
    return [note for note in notes if not note.startswith(MIXES)]


def _sentence(note: str) -> str:
    left_out = "left out: "
    return f"Left out: {note.removeprefix(left_out)}" if note.startswith(left_out) else note
