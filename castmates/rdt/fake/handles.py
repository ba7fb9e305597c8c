"""Open files, which outlive their names."""

import errno
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from castmates.rdt.fake.nodes import Node
from castmates.rdt.fake.texts import refusal

PAGE = 4096  # bytes that one write may have


class Handle:
    """One open file; each write is a separate command."""

    def __init__(
        self,
        node: Node,
        reads: bool,
        writes: bool,
        mutex: AbstractContextManager[bool],
        closed: Callable[["Handle"], None],
    ) -> None:
        self._node, self._reads, self._writes, self._mutex, self._closed = node, reads, writes, mutex, closed
        self._text: bytes | None = None
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """Read on in the text that the first read found."""
        with self._mutex:
            self._check(self._reads)
            if self._text is None:
                self._text = self._show()
            end = len(self._text) if size < 0 else self._position + size
            part = self._text[self._position : end]
            self._position += len(part)
            return part

    def pread(self, size: int, offset: int) -> bytes:
        """Read from an offset; from 0 what the file holds now."""
        with self._mutex:
            self._check(self._reads)
            if offset == 0 or self._text is None:
                self._text = self._show()
            return self._text[offset : offset + size]

    def rewind(self) -> None:
        """Go back to the beginning, so that the next read finds what the file holds then."""
        self._text, self._position = None, 0

    def write(self, data: bytes) -> int:
        """Give the file a command."""
        with self._mutex:
            self._check(self._writes)
            if len(data) > PAGE:
                raise refusal(errno.E2BIG)
            content = self._node.content
            if content is None or content.store is None:
                raise refusal(errno.EINVAL)
            content.store(data)
            return len(data)

    def close(self) -> None:
        """Let go of it."""
        self._closed(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _show(self) -> bytes:
        assert self._node.content is not None
        return self._node.content.show().encode("utf-8", "surrogateescape")

    def _check(self, may: bool) -> None:
        if not may:
            raise refusal(errno.EBADF)
        if self._node.gone:
            raise refusal(errno.ENODEV)
