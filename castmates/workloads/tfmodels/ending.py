"""Ends a job on SIGTERM: between two steps, or in the middle of one that takes too long; standard library only."""

import os
import signal
import sys
import threading
import time

from castmates.workloads.heartbeat import Writer

PATIENCE_SECONDS = 1.0


class Ending:
    """Whether the job was asked to stop.

    Python's own handler waits until a step has returned to Python; a large model's takes many seconds. The signal also
    wakes a thread, which ends the process where the step does not come to its end soon.
    """

    def __init__(self, beats: Writer) -> None:
        self.told = False
        self._beats = beats
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGTERM, self._told)
        threading.Thread(target=self._watch, name="ending", daemon=True).start()

    def _told(self, *_: object) -> None:
        self.told = True

    def _watch(self) -> None:
        while os.read(self._woken, 1) != bytes([signal.SIGTERM]):
            pass
        time.sleep(PATIENCE_SECONDS)
        leave(self._beats)


def leave(beats: Writer) -> None:
    """End well and at once, without taking TensorFlow apart."""
    beats.finished()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
