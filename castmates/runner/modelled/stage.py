"""The stage of a modelled launch: the runner's rounds, windows and ledger on it, in the modelled machine's time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from castmates.runner.modelled.cast import Played
from castmates.runner.modelled.hardware import ModelledHardware, quota_of
from castmates.runner.modelled.world import World
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import Share


class Freezing:
    """Who is frozen on the modelled machine; nothing else can thaw them."""

    kind = "none needed (modelled)"

    def __init__(self) -> None:
        self._moving: set[str] = set()

    def adopt(self, name: str, pid: int) -> None:
        """Everybody begins frozen."""

    def freeze(self, name: str) -> None:
        """Stop a process."""
        self._moving.discard(name)

    def thaw(self, name: str) -> None:
        """Let a process run."""
        self._moving.add(name)

    def pause(self, names: Sequence[str]) -> None:
        """Stop processes."""
        self._moving.difference_update(names)

    def let_go(self, names: Sequence[str]) -> None:
        """Let processes run."""
        self._moving.update(names)

    def is_frozen(self, name: str) -> bool:
        """Check whether it is stopped."""
        return name not in self._moving

    def kill(self, name: str) -> None:
        """There is nothing to kill."""

    def stragglers(self, name: str) -> list[int]:  # noqa: ARG002 (the runner asks so)
        """No process stays behind."""
        return []

    def group_of(self, name: str) -> Path | None:  # noqa: ARG002
        """There are no control groups."""
        return None

    def groups(self) -> list[Path]:
        """There is nothing to guard."""
        return []

    def close(self) -> None:
        """There is nothing to let go of."""


class ModelledStage(Stage):
    """Processes on the modelled machine, and which of them run."""

    def __init__(
        self,
        world: World,
        cast: Sequence[Played],
        hardware: ModelledHardware,
        check: Callable[[], None],
        evictors: Mapping[str, int],
    ) -> None:
        super().__init__(cast, Freezing(), hardware, check, evictors)
        self._world, self._granted = world, hardware.granted

    def now_ns(self) -> int:
        """Return the time on the modelled machine's clock."""
        return self._world.now_ns

    def apply_shares(self, shares: tuple[Share, ...]) -> bool:
        """Put these shares of caches, bandwidth, CPU time and prefetchers in force; True where ways were lost."""
        lost = super().apply_shares(shares)
        quotas = {share.member: quota_of(share) for share in shares}
        prefetching = not any(share.prefetchers for share in shares)  # of all cores, as on real machines
        self._world.grant(
            {
                name: replace(grant, quota=quotas.get(name, 1.0), prefetching=prefetching)
                for name, grant in self._granted().items()
            }
        )
        return lost

    def switch(self, names: Sequence[str]) -> None:
        """Freeze and thaw until exactly these processes run."""
        super().switch(names)
        self._world.let_run(names)

    def sleep_until(self, t_ns: int) -> None:
        """Let the modelled time pass, which takes next to none of ours, and keep up with the heartbeats."""
        self._check()
        self._world.run_until(t_ns)
        self.read_beats()

    def exchange(self, names: Sequence[str]) -> None:
        """Freeze and thaw until exactly these processes run."""
        super().exchange(names)
        self._world.let_run(names)

    def rest_until(self, t_ns: int) -> None:
        """Let the modelled time pass."""
        self.sleep_until(t_ns)

    def cpus_of_threads(self, name: str) -> set[int]:
        """Return where a process may run: it is never moved."""
        return set(self.cast[name].start.cpus)

    def dismiss(self) -> list[str]:
        """No process has to be asked to end."""
        self.switch([])
        return []
