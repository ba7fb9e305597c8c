"""The warden itself: reads announcements until the runner is gone, however that came, then cleans up."""

import contextlib
import json
import os
import signal
import sys


def main() -> None:
    """Be there at once, because the runner waits for that; what cleaning up takes is imported while it goes on."""
    runner = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, b"ready")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    watch(runner)


def watch(runner: int) -> None:
    """Read until all processes that announce anything have ended."""
    from castmates.runner.cleanup.leftovers import ORDER, Guarded, clean_up, clean_up_unannounced

    announced: list[Guarded] = []
    released = False
    for line in sys.stdin.buffer:
        with contextlib.suppress(ValueError):  # the runner died in the middle of a line
            kind, value = json.loads(line)
            if kind in ORDER:
                announced.append((kind, value))
            released |= kind == "release"  # the runner's last word where it ends in good order
    clean_up([each for each in announced if each[0] != "orphan" or not released])
    if not released:
        clean_up_unannounced(runner)


if __name__ == "__main__":
    main()
