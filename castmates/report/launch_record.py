"""What the report asks of each launch.json."""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from castmates.report.machine_facts import Facts
from castmates.results.records import REUSED

# The parts of a launch.json that the report asks for: its members, what was thrown away, how it settled.


class MemberFacts(Facts):
    """A member as a launch's spec has it."""

    name: str = "–"
    workload: str = "–"
    role: str = "–"
    unit: str = "–"
    progress: str = ""
    cpus: tuple[int, ...] = ()


class RequestFacts(Facts):
    """The records of a service's requests in one launch."""

    records: int = 0
    lost: int = 0  # overwritten before they were read, or impossible
    trouble: str = ""  # why no more were read


class CollectorCost(Facts):
    """What a collector did to the lead's rate in one launch."""

    logs: tuple[float, ...] = ()  # of each pair: the rate with it over the rate without it
    seconds: float | None = None  # of the two reads of a window, where it does nothing in between


class LedgerFacts(Facts):
    """How much of a launch was thrown away; by kind of scene, and by kind of reason and scene."""

    windows: Mapping[str, int] = {}
    rejected: Mapping[str, int] = {}
    because: Mapping[str, Mapping[str, int]] = {}
    stretches: int = 0
    stretches_rejected: int = 0  # with all their windows, for what one watched slice showed
    stretches_because: Mapping[str, int] = {}
    slices: Mapping[str, int] = {}
    slices_rejected: Mapping[str, int] = {}
    slices_dropped: Mapping[str, int] = {}  # whose cycle lost another one
    slices_because: Mapping[str, Mapping[str, int]] = {}


class Response(Facts):
    """What slices of one length showed of the time after a change of scene."""

    watched: float = math.nan  # seconds after a change of scene that were looked at
    curves: Mapping[str, int] = {}  # by member: how many slices it was seen in
    response: Mapping[str, tuple[float | None, ...]] = {}  # by member: log rate of each part, against the later half


class Settled(Response):
    """What a launch found out about its settle time."""

    seconds: float = math.nan  # waited after a change of scene
    steady_after: float | None = None  # when rates were seen to be steady
    slowest: str | None = None  # the member whose rate was the last to be
    unsteady: bool = False  # they never were
    asked: float | None = None  # by the design
    earlier: tuple[Response, ...] = ()  # of slices of other lengths, before the last one was chosen


class EvictionFacts(Facts):
    """How far the caches were emptied in a launch, before its stretches."""

    times: int = 0
    left: float | None = None  # share of the caches that members held then, in the median
    left_most: float | None = None
    not_emptied: int = 0  # how often that was too much
    not_steady: int = 0  # how often rates or occupancy still changed when a stretch began, or were not known


Number = TypeVar("Number", int, float)
UNREAD = ("not watched", "traffic not counted", "looks without a value")  # of what a monitor describes


class LaunchRecord:
    """The launch.json of one launch.

    It reads from the mapping when it is asked: thousands of records share most of what they hold.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    def _mapping(self, name: str) -> Mapping[str, Any]:
        return _mapping(self._facts, name)

    def _text(self, name: str) -> str:
        return str(self._facts.get(name) or "")

    @property
    def measured(self) -> bool:
        """Whether it measured anything."""
        return bool(self._facts.get("status") == "measured")

    @property
    def failed(self) -> bool:
        """Whether it ended before it was whole."""
        return bool(self._facts.get("status") == "failed")

    @property
    def reason(self) -> str:
        """Why it failed."""
        return self._text("reason")

    @property
    def reused(self) -> dict[str, str]:
        """The study that measured it, and when, where that was another one."""
        return {str(name): str(value) for name, value in self._mapping(REUSED).items()}

    @property
    def platform(self) -> str:
        """Measured, emulated, modelled or rehearsed."""
        return self._text("platform")

    @property
    def host(self) -> str:
        """The machine's name."""
        return self._text("host")

    @property
    def freezer(self) -> str:
        """What froze its members."""
        return self._text("freezer")

    @property
    def started(self) -> str:
        """When, in ISO 8601."""
        return self._text("started")

    @property
    def seconds(self) -> float | None:
        """How long all of it took."""
        return _number(self._mapping("seconds").get("total"), float)

    @property
    def rounds(self) -> int | None:
        """Rounds without a rejected window."""
        return _number(self._facts.get("rounds"), int)

    @property
    def versions(self) -> dict[str, str]:
        """What ran, by program."""
        return {str(name): str(version) for name, version in self._mapping("versions").items() if version}

    @property
    def castmates(self) -> str:
        """The Castmates that measured it; "" where that is not known."""
        return self.versions.get("castmates", "")

    @property
    def cohort(self) -> str:
        """The id of its cohort."""
        return str(_mapping(self._spec, "cohort").get("id") or "")

    @property
    def scenes(self) -> list[str]:
        """The names of its cohort's scenes."""
        scenes = _mapping(self._spec, "cohort").get("scenes")
        return [str(scene["name"]) for scene in scenes] if isinstance(scenes, list | tuple) else []

    @property
    def protocol(self) -> int | None:
        """The version of the way of measuring."""
        return _number(_mapping(self._spec, "cohort").get("protocol"), int)

    @property
    def number(self) -> int:
        """Its number in the cohort."""
        return _number(self._spec.get("number"), int) or 0

    @property
    def place(self) -> tuple[str, int]:
        """Cohort and number, as the tables have them."""
        return self.cohort, self.number

    @property
    def seed(self) -> int | None:
        """What its random orders derive from."""
        return _number(self._spec.get("seed"), int)

    @property
    def design(self) -> Mapping[str, Any]:
        """The design's fields by name, as the launch was measured with them."""
        return _mapping(self._spec, "design")

    @property
    def members(self) -> list[MemberFacts]:
        """The members that it was to start."""
        members = _mapping(self._spec, "cohort").get("members")
        if not isinstance(members, list | tuple):
            return []
        return [MemberFacts.model_validate(member) for member in members if isinstance(member, Mapping)]

    @property
    def pinned(self) -> bool:
        """Whether each member had its own CPUs."""
        return any(isinstance(member, Mapping) and member.get("cpus") for member in self._mapping("members").values())

    @property
    def packages(self) -> set[tuple[str, str]]:
        """The packages of its members' programs, with their versions."""
        packages = [_mapping(member, "package") for member in self._mapping("members").values()]
        return {(str(name), str(version)) for package in packages for name, version in package.items() if version}

    @property
    def pages(self) -> list[tuple[str, str, int, int]]:
        """Of its members: the workload, the pages that it was to have, its bytes, and those on huge pages."""
        found = []
        for member in self.members:
            pages = _mapping(_mapping(self._mapping("members"), member.name), "pages")
            resident, huge = (_number(pages.get(name), int) for name in ("resident", "huge"))
            if resident and huge is not None:
                found.append((member.workload, str(pages.get("wanted") or ""), resident, huge))
        return found

    @property
    def counted_runs(self) -> list[tuple[str, int, int, int]]:
        """Of leads whose progress is instructions: whole runs, and the fewest and the most that one of them took."""
        found = []
        for member in self.members:
            kept = _mapping(_mapping(self._mapping("members"), member.name), "kept_alive")
            runs, fewest, most = (_number(kept.get(name), int) or 0 for name in ("runs", "fewest_units", "most_units"))
            if member.progress == "instructions" and member.role == "lead":
                found.append((member.workload, runs, fewest, most))
        return found

    @property
    def requests(self) -> dict[str, RequestFacts]:
        """What became of the records of requests, by the service that wrote them."""
        members = self._mapping("members")
        kept = {str(name): _mapping(member, "requests") for name, member in members.items()}
        return {name: RequestFacts.model_validate(dict(facts)) for name, facts in kept.items() if facts}

    @property
    def environments(self) -> dict[str, str]:
        """The keys of the environments that it used."""
        built = self._mapping("environments")
        keys = {name: _mapping(built, name).get("key") for name in built}
        return {str(name): str(key) for name, key in keys.items() if key}

    @property
    def prepared(self) -> dict[str, str]:
        """The knobs of the machine that were set for it."""
        words = _mapping(self.design, "prepare")
        return {str(knob): str(words[knob]) for knob in self._mapping("prepared") if words.get(knob) is not None}

    @property
    def allocation(self) -> str:
        """What shared out the cache."""
        return str(_mapping(self._mapping("hardware"), "allocator").get("allocation") or "")

    @property
    def ways(self) -> str:
        """The ways of the cache, in the allocator's words."""
        return str(_mapping(self._mapping("hardware"), "allocator").get("ways") or "")

    @property
    def unread(self) -> list[str]:
        """What could not be read of the cache, in the monitor's words."""
        monitor = _mapping(self._mapping("hardware"), "monitor")
        return [str(monitor[name]) for name in UNREAD if monitor.get(name)]

    @property
    def monitored(self) -> str:
        """The events that a monitor read of the cache, in its words."""
        return str(_mapping(self._mapping("hardware"), "monitor").get("events") or "")

    @property
    def traffic_kinds(self) -> str:
        """Which kinds of memory traffic its events counted, where that can be chosen."""
        return str(_mapping(self._mapping("hardware"), "monitor").get("traffic counts") or "")

    @property
    def witnessed(self) -> str:
        """How its masks were watched."""
        return str(_mapping(self._mapping("hardware"), "masks").get("masks") or "")

    @property
    def costs(self) -> dict[str, CollectorCost]:
        """What its collectors cost, by collector."""
        costs = self._mapping("costs").items()
        return {str(name): CollectorCost.model_validate(cost) for name, cost in costs if isinstance(cost, Mapping)}

    @property
    def ledger(self) -> LedgerFacts:
        """How much of it was thrown away, and why."""
        return LedgerFacts.model_validate(dict(self._mapping("ledger")))

    @property
    def eviction(self) -> EvictionFacts:
        """How far its caches were emptied."""
        return EvictionFacts.model_validate(dict(self._mapping("eviction")))

    @property
    def slices(self) -> list[float]:
        """The nominal lengths of its slices in seconds, round by round."""
        rounds = self._mapping("pace").get("rounds")
        rounds = rounds if isinstance(rounds, list | tuple) else []
        lengths = [_number(_plain(each).get("slice"), float) for each in rounds]
        return [length for length in lengths if length is not None]

    @property
    def settled(self) -> Settled | None:
        """What it found out about its settle time, where it did."""
        settle = self._mapping("settle")
        return Settled.model_validate({**settle, "asked": self.design.get("settle")}) if "seconds" in settle else None

    @property
    def _spec(self) -> Mapping[str, Any]:
        return self._mapping("spec")


def _number(value: object, kind: Callable[[Any], Number]) -> Number | None:
    """A number as it is noted; None where there is none, or something else."""
    try:
        return None if value is None else kind(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _plain(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mapping(facts: object, name: str) -> Mapping[str, Any]:
    value = facts.get(name) if isinstance(facts, Mapping) else None
    return value if isinstance(value, Mapping) else {}
