"""Reads a trace of events as JSON, which PyTorch writes, piece by piece: it need not fit into memory.

A piece of the list of events ends between two of them. Where that is cannot be seen from a brace alone, which may lie
within an event or a text; but what stands before it is whole JSON only where an event ends.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from castmates.errors import CastmatesError

AT_ONCE = 4 << 20  # bytes that are parsed together
EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
BARE = re.compile(rb"\s*\[")  # a file that is a list of events, and nothing else
BETWEEN = re.compile(rb"\}\s*(,)\s*(?=\{)")  # perhaps the end of an event
NEAR = 1 << 16  # bytes before the end of a piece in which an event is sure to end
HEADER = 1 << 20  # bytes before the events, at most
WHAT = "no trace of PyTorch's profiler"
UNREADABLE = (OSError, EOFError, zlib.error)
Event = Mapping[str, Any]


class Events:
    """The events of a trace, some at a time; `facts` has what else the file says, once they are read."""

    def __init__(self, path: Path, what: str = WHAT) -> None:
        self._path, self._what, self._bare = path, what, False
        self.facts: dict[str, Any] = {}

    def __iter__(self) -> Iterator[list[Event]]:
        try:
            with _opened(self._path) as file:
                yield from self._read(file)
        except UNREADABLE as problem:
            raise CastmatesError(f"{self._path}: no trace can be read here ({problem}).") from None

    def _read(self, file: IO[bytes]) -> Iterator[list[Event]]:
        rest = self._header(file)
        begun = BARE.match(rest)
        self._bare = begun is not None
        begun = begun or EVENTS.search(rest)
        if begun is None:
            raise CastmatesError(f"{self._path}: this is {self._what}: it has no events.")
        if not self._bare:
            self._add_facts(rest[: begun.start()].rstrip().rstrip(b",") + b"}")
        rest = rest[begun.end() :]
        while more := file.read(AT_ONCE):
            rest += more
            events, rest = self._piece(rest)
            yield events
        yield self._last(rest)

    def _header(self, file: IO[bytes]) -> bytes:
        """What stands before the events, and some of them."""
        content = b""
        while (
            len(content) < HEADER
            and not (EVENTS.search(content) or BARE.match(content))
            and (more := file.read(1 << 16))
        ):
            content += more
        return content

    def _piece(self, content: bytes) -> tuple[list[Event], bytes]:
        """The events that are whole, and what is left."""
        for comma in reversed([found.start(1) for found in BETWEEN.finditer(content, max(0, len(content) - NEAR))]):
            try:
                return _list(json.loads(b"[" + content[:comma] + b"]")), content[comma + 1 :]
            except ValueError:
                continue  # within an event, or a text
        if len(content) > 4 * AT_ONCE:
            raise CastmatesError(f"{self._path}: this is {self._what}: its events are no JSON.")
        return [], content

    def _last(self, content: bytes) -> list[Event]:
        """The last events, and the facts behind them."""
        try:
            text = "[" + content.decode()
            events, end = json.JSONDecoder().raw_decode(text)
            after = text[end:].strip().removeprefix(",")
        except ValueError:
            raise CastmatesError(
                f"{self._path}: this is {self._what}, or it was cut: its events are no whole JSON."
            ) from None
        self._add_facts(b"{" + (b"}" if self._bare and not after else after.encode()))
        return _list(events)

    def _add_facts(self, content: bytes) -> None:
        try:
            self.facts |= json.loads(content)
        except ValueError:
            raise CastmatesError(f"{self._path}: this is {self._what}, or it was cut: it is no whole JSON.") from None


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _list(events: list[Any]) -> list[Event]:
    return [event for event in events if isinstance(event, dict)]
