"""What a study asks of a machine and does not get, or gets differently: remarks on mixes and on partitions."""

from collections.abc import Iterable

from castmates.study.frozen import Frozen

MIXES = "mixes"


class Remark(Frozen):
    """One remark: what it is about, and a sentence."""

    about: str  # MIXES, or the key of the partitions that it is on, such as cache.sweeps.1
    text: str
    left_out: bool = False  # the text says what or why
    machine: str = ""  # the class of nodes that it is on, in a study with classes

    @property
    def words(self) -> str:
        """The remark without what it is about."""
        return f"left out: {self.text}" if self.left_out else self.text

    @property
    def _of_class(self) -> str:
        return f"on {self.machine}: " if self.machine else ""

    @property
    def on_mix(self) -> str:
        """A remark on mixes as a sentence among others on mixes."""
        if self.left_out and not self.machine:
            return f"Left out: {self.text}"
        return f"{self._of_class}{self.words}"

    def __str__(self) -> str:
        if self.about == MIXES:
            return f"{MIXES}: {self._of_class}{self.words}"
        return f"{self._of_class}{self.about}: {self.words}"


def on_mixes(notes: Iterable[Remark]) -> list[str]:
    """The remarks on mixes, as separate sentences."""
    return [note.on_mix for note in notes if note.about == MIXES]


def on_partitions(notes: Iterable[Remark]) -> list[str]:
    """The remarks on partitions."""
    return [str(note) for note in notes if note.about != MIXES]
