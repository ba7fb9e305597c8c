"""Which launches get a line in a log: all of a short sweep, some of a long one, whatever is added to it on the way."""

import math

from castmates.terminal.sweep import LaunchProgress

MOST = 40  # lines of launches
FEWEST = 1  # of those that are added when there have been as many
MOST_REASONS = 6  # of launches whose programs failed


class LogLines:
    """Those of one sweep."""

    def __init__(self) -> None:
        self._shown = 0
        self._total = 0  # launches that the pace was made for
        self._every, self._next = 1, 1
        self._reasons: set[tuple[str, str]] = set()

    def wants(self, done: int, total: int) -> bool:
        """Whether the launch that has just ended, so many being done, gets a line."""
        if total != self._total:
            self._total = total
            self._every = math.ceil((total - done + 1) / max(MOST - self._shown, FEWEST))
            self._next = done - 1 + self._every
        if done < self._next and done < total:
            return False
        self._next = done + self._every
        self._shown += 1
        return True

    def is_new_failure(self, progress: LaunchProgress) -> bool:
        """Whether its program failed for a reason that has not been shown yet."""
        if progress.note is None or progress.note.status != "failed":
            return False
        reason = (progress.launch.cohort.id, progress.note.reason)
        if reason in self._reasons or len(self._reasons) >= MOST_REASONS:
            return False
        self._reasons.add(reason)
        return True
