"""A terminal of a given size in which a test runs a command, reads what is shown, and presses keys."""

import fcntl
import os
import re
import struct
import subprocess
import termios
import threading
from contextlib import suppress
from pathlib import Path

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A pseudo-terminal with a command in it, of which it is the controlling one."""

    def __init__(self, words: list[str], folder: Path, environment: dict[str, str], columns: int = 110) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            words, cwd=folder, env=environment | {"TERM": "xterm-256color"}, preexec_fn=lambda: os.login_tty(theirs)
        )
        os.close(theirs)
        self._shown = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # the last one has left the terminal
            while part := os.read(self._ours, 65536):
                self._shown += part

    @property
    def raw(self) -> str:
        """Everything that came, with the codes that move the cursor and colour."""
        return self._shown.decode(errors="replace")

    @property
    def text(self) -> str:
        """The same without these."""
        return CODES.sub("", self.raw)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait(self, seconds: float) -> int:
        """The status of the command, when it has ended and all is read."""
        status = self.process.wait(seconds)
        self._reader.join(seconds)
        os.close(self._ours)
        return status
