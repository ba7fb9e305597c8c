"""A range that has begun and not ended, to be handed on to whoever ends it (standard library only, Python 3.10 on)."""

from typing import Any


class Handle:
    """What `start` returns and `end` takes, in any function and any thread of the process."""

    __slots__ = ("before", "begin_ns", "epoch", "name", "payload", "step", "thread", "type", "writer")

    def __init__(self, type_: int, name: int, step: int, payload: bytes | None, epoch: int) -> None:
        self.type, self.name, self.step, self.payload, self.epoch = type_, name, step, payload, epoch
        self.begin_ns = self.thread = 0
        self.before = epoch  # the epoch around an epoch
        self.writer: Any = None  # whose it is until it ends
