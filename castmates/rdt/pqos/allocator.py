"""Gives members cache ways and memory bandwidth through Intel's pqos, where resctrl cannot be used."""

import os
from collections.abc import Mapping, Sequence

from castmates.errors import CastmatesError
from castmates.machine.lock import print_progress
from castmates.machine.pqos_text import State
from castmates.protocols import Held, Say
from castmates.rdt.pqos.classes import DEFAULT, Arrangement, arrange, as_state, schemata_of
from castmates.rdt.pqos.session import PqosSession
from castmates.rdt.resctrl.schemata import one_line
from castmates.rdt.resctrl.tasks import Tasks
from castmates.rdt.resctrl.wanted_schemata import differences, loses_ways, name_of
from castmates.study.cpus import format_cpu_list
from castmates.study.spec import REST, Share


class PqosAllocator:
    """Puts the CPUs of members into classes; a member has what its CPUs have."""

    name = "pqos"

    def __init__(
        self, session: PqosSession, tasks: Tasks, say: Say = print_progress, beyond_site: bool = False
    ) -> None:
        self.session, self.tasks, self.say, self._beyond_site = session, tasks, say, beyond_site
        self._members: Mapping[str, Held] = {}
        self._arrangement: Arrangement | None = None
        self._seen: State | None = None  # what was read last

    def prepare(self, members: Mapping[str, Held]) -> None:
        """Look what there is, and refuse where others are."""
        self._members = members
        self._seen = self.session.former
        self.apply([])

    def apply(self, shares: Sequence[Share]) -> bool:
        """Give out these shares, and what was found to those not named, and prove that they were taken.

        True where a member has lost ways: nothing evicts what lies in them.
        """
        former, cache = self.session.former, self.session.cache
        self._check(shares)
        wanted = arrange(shares, self._members, former, cache, self._beyond_site)
        before, self._seen = self._seen or former, self.session.set(as_state(wanted, former))
        self._arrangement = wanted
        if wrong := self._differences(self._seen):
            raise CastmatesError(
                f"pqos took what was asked but shows something else ({'; '.join(wrong)}): somebody else has changed "
                "it, or this processor changes such masks; then leave them out of the study."
            )
        return any(self._lost(before, self._seen, cpu) for cpu in former.cores)

    def read_back(self) -> dict[str, str]:
        """Read what is in force, by member, in one line of the kernel's words; what CPUs differ in stands apart."""
        self._seen = state = self.session.state()
        schemata = {name: self._line_of(held.cpus, state) for name, held in self._members.items()}
        if self._arrangement and self._arrangement.classes[DEFAULT] != schemata_of(
            self.session.former, DEFAULT, self.session.cache
        ):
            schemata[REST] = one_line(schemata_of(state, DEFAULT, self.session.cache))
        return schemata

    def misplaced(self) -> list[str]:
        """List in words which CPUs are not in their class, and which threads may leave their member's CPUs."""
        sentences = []
        if self._arrangement and self._seen:
            cores = self._arrangement.cores
            wrong = {cpu: its for cpu, (_, its) in self._seen.cores.items() if its != cores.get(cpu, its)}
            sentences += [f"CPU {cpu} is in class {its} and not in {cores[cpu]}" for cpu, its in wrong.items()]
        threads = self.tasks.threads([held.pid for held in self._members.values()])
        for name, held in self._members.items():
            for tid in threads[held.pid]:
                if away := _allowed(tid) - set(held.cpus):
                    sentences.append(
                        f"thread {tid} of {name} may run on CPU {format_cpu_list(away)}, where it has no share"
                    )
        return sentences

    def restore(self) -> None:
        """Put everything back as it was found; safe to call twice."""
        self._arrangement = None
        self.session.close()

    def about(self) -> dict[str, str]:
        """Describe what is driven and how."""
        cache = self.session.cache
        throttle, holes = cache.bandwidth, "with" if cache.sparse else "without"
        return {
            "allocation": f"pqos {self.session.version}, interface {self.session.tool.interface}, by CPU",
            "ways": f"{cache.ways}, masks of at least {cache.least_ways}, {holes} holes",
            "way_bytes": str(cache.way_bytes or "unknown"),
            "ways shared with I/O": f"{cache.shareable:x}",
            "bandwidth": f"{throttle.unit}, from {throttle.least} in steps of {throttle.step}" if throttle else "none",
            "classes": str(cache.groups + 1),
            "default class": one_line(schemata_of(self.session.former, DEFAULT, cache)),
        }

    def _check(self, shares: Sequence[Share]) -> None:
        """Refuse what was planned for another cache: the plan is made without starting pqos."""
        cache = self.session.cache
        for share in shares:
            for mask in (share.ways, share.code):
                if mask is not None and (mask & ~cache.full or mask.bit_count() < cache.least_ways):
                    raise CastmatesError(
                        f"{name_of(share.member)} was given the way mask {mask:x}, but pqos reports that masks here "
                        f"are within {cache.full:x} and have at least {cache.least_ways} ways: write masks that fit."
                    )

    def _differences(self, state: State) -> list[str]:
        """Return what is not as it was given; throttles may be rounded up."""
        assert self._arrangement is not None
        cache, sentences = self.session.cache, []
        for number, schemata in self._arrangement.classes.items():
            there = differences(schemata, schemata_of(state, number, cache), cache)
            sentences += [f"class {number}: {difference}" for difference in there]
        return sentences + [
            f"CPU {cpu} is in class {state.cores[cpu][1]} instead of {number}"
            for cpu, number in self._arrangement.cores.items()
            if state.cores.get(cpu, (0, number))[1] != number
        ]

    def _lost(self, before: State, after: State, cpu: int) -> bool:
        cache, domain = self.session.cache, before.cores[cpu][0]
        earlier, later = (
            {
                resource: {at: mask for at, mask in values.items() if at == domain}
                for resource, values in schemata_of(state, state.cores[cpu][1], cache).items()
            }
            for state in (before, after)
        )
        return loses_ways(earlier, later)

    def _line_of(self, cpus: Sequence[int], state: State) -> str:
        numbers = sorted({state.cores[cpu][1] for cpu in cpus if cpu in state.cores})
        return " and ".join(one_line(schemata_of(state, number, self.session.cache)) for number in numbers)


def _allowed(tid: int) -> set[int]:
    try:
        return os.sched_getaffinity(tid)
    except ProcessLookupError:
        return set()
