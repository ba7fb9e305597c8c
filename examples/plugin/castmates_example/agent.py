"""An allocator for a virtual machine: an agent on the host, which may set the cache's masks, shares a folder with it.

The folder is named by the variable CACHE_AGENT. The agent describes the cache in `cache.json`. The guest writes
`wanted`, a line "CPUS MASK" for each program; the agent sets these masks and then copies the lines to `applied`.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from castmates import CastmatesError
from castmates.protocols import Held, Say
from castmates.rdt.choose import Driver
from castmates.study.cache import Cache
from castmates.study.spec import Share

VARIABLE = "CACHE_AGENT"
PATIENCE = 5.0  # seconds in which the agent answers
PAUSE = 0.01


class AgentAllocator:
    """Has the agent give each member's CPUs their ways."""

    name = "agent"

    def __init__(self, folder: Path, cache: Cache) -> None:
        self._folder, self._cache = folder, cache
        self._members: Mapping[str, Held] = {}
        self._masks: dict[str, int] = {}

    def prepare(self, members: Mapping[str, Held]) -> None:
        """Give everything to everybody, whatever a killed process has left."""
        self._members = members
        self.apply([])

    def apply(self, shares: Sequence[Share]) -> bool:
        """Give out these shares; True where a member has lost ways."""
        for share in shares:
            if share.member not in self._members or share.code is not None or share.bandwidth is not None:
                raise CastmatesError("the agent gives programs of the study cache ways, and nothing else.")
        given = {share.member: share.ways for share in shares if share.ways is not None}
        masks = {name: given.get(name, self._cache.full) for name in self._members}
        lost = any(before & ~masks[name] for name, before in self._masks.items())
        self._ask("".join(f"{_cpus(held)} {masks[name]:x}\n" for name, held in self._members.items()))
        self._masks = masks
        return lost

    def read_back(self) -> dict[str, str]:
        """Read what the agent reports, in the kernel's words."""
        masks = dict(line.split() for line in self._applied().splitlines())
        domains = self._cache.domains
        return {
            name: "L3:" + ";".join(f"{domain}={masks.get(_cpus(held), '?')}" for domain in domains)
            for name, held in self._members.items()
        }

    def misplaced(self) -> list[str]:
        """Masks belong to CPUs: no thread can have another one's."""
        return []

    def restore(self) -> None:
        """Have the agent take all masks back."""
        if self._members:
            self._ask("")
            self._members, self._masks = {}, {}

    def about(self) -> dict[str, str]:
        """For the launch's record."""
        return {"allocation": f"an agent on the host, through {self._folder}", "ways": str(self._cache.ways)}

    def _ask(self, lines: str) -> None:
        """Write what is wanted, in one step, and wait until it is in force."""
        new = self._folder / "wanted.new"
        new.write_text(lines)
        new.replace(self._folder / "wanted")
        deadline = time.monotonic() + PATIENCE
        while self._applied() != lines:
            if time.monotonic() > deadline:
                raise CastmatesError(f"{self._folder}: the agent has not applied what is wanted within {PATIENCE:g} s.")
            time.sleep(PAUSE)

    def _applied(self) -> str:
        file = self._folder / "applied"
        return file.read_text() if file.is_file() else ""


def _cpus(held: Held) -> str:
    return ",".join(map(str, held.cpus))


def _folder() -> Path:
    return Path(os.environ.get(VARIABLE, ""))


def _refusal() -> str:
    """Why nothing could be given out; "" where it could."""
    if not os.environ.get(VARIABLE):
        return f"the variable {VARIABLE} does not name the agent's folder"
    return "" if (_folder() / "cache.json").is_file() else f"{_folder()} has no cache.json: does the agent run?"


def _shareable() -> Cache | None:
    if _refusal():
        return None
    facts = json.loads((_folder() / "cache.json").read_text())
    return Cache(
        domains=tuple(facts["domains"]), ways=facts["ways"], way_bytes=facts.get("way_bytes"),
        least_ways=facts.get("least_ways", 1), sparse=False, shareable=0, groups=facts["groups"], cdp=False,
        bandwidth=None, events=(), monitored_groups=0, rest=False,
    )  # fmt: skip


def _allocator(say: Say) -> AgentAllocator:
    cache = _shareable()
    if cache is None:
        raise CastmatesError(f"no partition can be applied: {_refusal()}.")
    say(f"cache ways are given out by the agent in {_folder()}")
    return AgentAllocator(_folder(), cache)


AGENT = Driver(shareable=_shareable, refusal=_refusal, allocator=_allocator)
