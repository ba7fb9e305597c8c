"""A process that fills one part of a last-level cache, so that nothing of anybody else is left there."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evictor:
    """Where it runs, and how much it writes."""

    cpu: int
    bytes: int  # in a pass, and in its memory
    node: int | None = None  # whose part of a divided cache it fills
    bound: bool = False  # its memory must be bound to that node, because its CPU lies on another one

    @property
    def name(self) -> str:
        """Its name on the stage; no workload may have a colon in its name."""
        return f"evictor:{self.cpu}" + ("" if self.node is None else f":node{self.node}")

    @property
    def command(self) -> list[str]:
        """What runs there: it writes, because a processor need not keep lines in the cache that were only read."""
        return ["stream", "--mode", "write", "--bytes", str(self.bytes)]
