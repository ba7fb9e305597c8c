"""info/last_cmd_status: the kernel's verdict on the last command of any process."""

ROOM = 512  # bytes of its buffer


class Status:
    """A buffer that commands clear, or add to, and that takes no more once something did not fit."""

    def __init__(self) -> None:
        self._text = ""
        self._full = False

    def clear(self) -> None:
        """Begin a new command."""
        self._text, self._full = "", False

    def say(self, text: str) -> None:
        """Add a line."""
        line = text + "\n"
        if self._full or len((self._text + line).encode("utf-8", "surrogateescape")) >= ROOM:
            self._full = True
        else:
            self._text += line

    def show(self) -> str:
        """Return the text of the file."""
        return self._text or "ok\n"
