"""flock(2) on the root of the tree, between the threads of this process."""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from castmates.rdt.fake.texts import refusal


class Flock:
    """A lock that many may share or one may have."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holders: dict[int, bool] = {}  # thread -> whether it has the lock for itself

    @contextmanager
    def held(self, exclusive: bool) -> Iterator[None]:
        """Wait for the lock and hold it."""
        me = threading.get_ident()
        with self._changed:
            if me in self._holders:
                # With flock(2) on two descriptors a thread would wait for itself for ever.
                raise refusal(errno.EDEADLK)
            self._changed.wait_for(lambda: not self._holders if exclusive else not any(self._holders.values()))
            self._holders[me] = exclusive
        try:
            yield
        finally:
            with self._changed:
                del self._holders[me]
                self._changed.notify_all()
