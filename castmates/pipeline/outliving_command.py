"""A small process that outlives a command which sweeps: where that is killed, it ends the sweep in good order.

At the command's death Snakemake itself gets SIGTERM, at which it would wait for the launches that run: for minutes.
"""

import signal
import sys
import time

from castmates.linux.processes import read_process
from castmates.pipeline import ending_sweep

LOOK = 0.1  # seconds


def main(leader: int) -> None:
    """Read until the command writes that the sweep is over, or is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    snakemake = read_process(leader)
    if sys.stdin.buffer.read() or snakemake is None:
        return

    def is_there() -> bool:
        now = read_process(leader)
        return now is not None and now.alive and now.born == snakemake.born

    def has_ended(seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while is_there() and time.monotonic() < deadline:
            time.sleep(LOOK)
        return not is_there()

    ending_sweep.end(leader, has_ended)


if __name__ == "__main__":
    main(int(sys.argv[1]))
