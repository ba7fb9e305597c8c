"""Which tracks a timeline has: one of each member, process, thread and CPU, whichever source names it first."""

from typing import Any

from castmates.timeline.model import Making

RUN, MEMBER, PROCESS, THREAD, CPU, DEVICE = "run", "member", "process", "thread", "cpu", "device"


class Registry:
    """Hands out tracks; what one source knows of a track fills in what another left open."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._numbers: dict[tuple[str, object], int] = {}
        self._guessed: set[int] = set()  # tracks of threads whose process is a guess

    def run(self, name: str = "") -> int:
        """The track of the launch itself: its scenes, slices and masks."""
        return self._track(RUN, "", name)

    def member(self, name: str) -> int:
        """The track of a member: its steps, phases, heartbeats and counters."""
        return self._track(MEMBER, name, name, member=name)

    def process(self, pid: int, name: str = "", member: str = "") -> int:
        """The track of a process."""
        parent = self.member(member) if member else None
        return self._track(PROCESS, pid, name, parent, pid=pid, member=member)

    def thread(self, tid: int, pid: int | None = None, name: str = "", member: str = "", guessed: bool = False) -> int:
        """The track of a thread: its states, system calls and operations.

        Where the process is `guessed`, it stands until another source knows it.
        """
        parent = None if pid is None else self.process(pid, member=member)
        is_new = (THREAD, tid) not in self._numbers
        number = self._track(THREAD, tid, name, parent, pid=pid, tid=tid, member=member)
        if guessed and is_new:
            self._guessed.add(number)
        elif not guessed and pid is not None and number in self._guessed:
            self._guessed.remove(number)
            self._making.tracks()[number] |= {"pid": pid, "parent": parent}
        return number

    def cpu(self, number: int) -> int:
        """The track of a CPU."""
        return self._track(CPU, number, f"cpu{number}", cpu=number)

    def device(self, name: str, member: str = "") -> int:
        """The track of a device, such as a stream of a GPU."""
        return self._track(DEVICE, name, name, self.member(member) if member else None, member=member)

    def _track(self, kind: str, key: object, name: str, parent: int | None = None, **about: Any) -> int:  # noqa: ANN401
        number = self._numbers.get((kind, key))
        if number is None:
            number = self._numbers[kind, key] = self._making.track(kind, name, parent, **about)
            return number
        known = self._making.tracks()[number]
        for column, value in {"name": name, "parent": parent, **about}.items():
            if known.get(column) in (None, "") and value not in (None, ""):
                known[column] = value
        return number
