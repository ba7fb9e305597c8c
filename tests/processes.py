"""What the kernel shows of a process, as tests ask it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def as_user(do: Callable[[], Any], uid: int = 65534, gid: int | None = None) -> Any:
    """What a function returns that a child process of a user runs; nobody's, where none is named."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid if gid is None else gid)
            os.setuid(uid)
            os.write(writing, json.dumps(do()).encode())
        except BaseException as error:
            os.write(writing, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        text = answers.read()
    os.waitpid(child, 0)
    return json.loads(text)


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or at least dead: whoever inherits it may be slow to bury it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def has_signal(field: str, pid: int, number: int) -> bool:
    """Return whether a signal is in this mask of the process: `ShdPnd` are those that it has not taken yet."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(lines[field], 16) >> number - 1 & 1)
