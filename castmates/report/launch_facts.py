"""The parts of a launch.json that the report asks for: its members, what was thrown away, how it settled."""

import math
from collections.abc import Mapping

from castmates.report.facts import Facts


class MemberFacts(Facts):
    """A member as a launch's spec has it."""

    name: str = "–"
    workload: str = "–"
    role: str = "–"
    unit: str = "–"
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
