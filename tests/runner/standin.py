"""A small memcached for tests of the load generator: it can stall, and it can lie."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path


class StandIn:
    """Speaks as much of memcached's protocol as is asked of it, one request after the other."""

    def __init__(self, path: Path) -> None:
        self.values: dict[bytes, bytes] = {}
        self.lies = False
        self.stalled: list[tuple[int, int]] = []  # from and to, CLOCK_MONOTONIC
        self._stall_s = 0.0
        self._turn = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self, seconds: float) -> None:
        """Answer nobody for so long, from the next request on."""
        self._stall_s = seconds

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, suppress(OSError):  # the generator may end at any moment
            for line in lines:
                connection.sendall(self._answer(line.split(), lines))

    def _answer(self, words: list[bytes], lines) -> bytes:
        if words[0] == b"set":
            self.values[words[1]] = lines.read(int(words[4]) + 2)[:-2]
            return b"STORED\r\n"
        with self._turn:
            if self._stall_s:
                begin = time.monotonic_ns()
                time.sleep(self._stall_s)
                self._stall_s = 0.0
                self.stalled.append((begin, time.monotonic_ns()))
        value = self.values[words[1]]
        value = bytes([value[0] ^ 1]) + value[1:] if self.lies else value
        return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (words[1], len(value), value)
