"""The key `cache` of a study: which partitions of the last-level cache and of memory bandwidth are tried."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from castmates.study import masks
from castmates.study.partitions.amounts import rate_text, ways_text
from castmates.study.rehearsing import Rehearsal
from castmates.study.written import LossPercent, Name, Written

ROLES = ("lead", "antagonists")
GENERATORS = ("split", "lead_ways", "overlap", "antagonist_cap", "masks")
SIDES = ("low", "high")
FASTEST_MONITOR = 100.0


def _each(value: object) -> list[object]:
    """One amount, or a list of them with at least one."""
    return value if isinstance(value, list) and value else [value]


def _ways(value: object) -> tuple[str, ...]:
    return tuple(ways_text(amount) for amount in _each(value))


def _rates(value: object) -> tuple[str, ...]:
    return tuple(rate_text(amount) for amount in _each(value))


def _positions(value: object) -> tuple[str, ...]:
    written = _each(value)
    positions = tuple(str(position) for position in written if type(position) is int or isinstance(position, str))
    if len(positions) < len(written) or any(not (text in SIDES or text.isdecimal()) for text in positions):
        raise ValueError("low, high, the number of a way (the first is 0), or a list of these")
    return positions


def _mask(value: object) -> object:
    """Take a bare mask for one of data and code alike."""
    return value if isinstance(value, dict) else {"data": value}


def _mask_text(value: object) -> str:
    return f"0x{masks.parse(value if isinstance(value, str) else ''):x}"


def one_or_list(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of one value, or of a list of them with at least one."""
    return {"anyOf": [*kinds, {"type": "array", "items": {"anyOf": kinds}, "minItems": 1}]}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
MASK = {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]+$"}

Ways = Annotated[tuple[str, ...], BeforeValidator(_ways), WithJsonSchema(one_or_list([NUMBER, TEXT]))]
Rates = Annotated[tuple[str, ...], BeforeValidator(_rates), WithJsonSchema(one_or_list([TEXT]))]
Positions = Annotated[tuple[str, ...], BeforeValidator(_positions), WithJsonSchema(one_or_list([NUMBER, TEXT]))]
MaskText = Annotated[str, BeforeValidator(_mask_text), WithJsonSchema(MASK)]


PREFETCHING = ("on", "off")


def _prefetching(value: object) -> tuple[str, ...]:
    """Take bare words, which YAML reads as true and false, and lists of them."""
    words = [PREFETCHING[not each] if isinstance(each, bool) else each for each in _each(value)]
    if any(word not in PREFETCHING for word in words):
        raise ValueError("on, off, or a list of both")
    return tuple(word for word in PREFETCHING if word in words)


SWITCH = {"enum": [*PREFETCHING, True, False]}
Prefetching = Annotated[
    tuple[Literal["on", "off"], ...],
    BeforeValidator(_prefetching),
    WithJsonSchema(one_or_list([SWITCH])),
]


class Masks(Written):
    """The mask of one member; a bare one holds for data and code."""

    data: MaskText = Field(description="way mask in hexadecimal digits, in quotes; of data only where 'code' is given")
    code: MaskText | None = Field(default=None, description="way mask of code, where resctrl is mounted with cdp")


MaskOf = Annotated[
    Masks,
    BeforeValidator(_mask),
    WithJsonSchema(
        {
            "anyOf": [
                MASK,
                {
                    "type": "object",
                    "properties": {"data": MASK, "code": MASK},
                    "required": ["data"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class Sweep(Written):
    """Partitions of one kind; where several keys have several values, every combination is one."""

    name: Name | None = Field(default=None, description="what its partitions' names begin with; made from the keys")
    split: Ways | None = Field(default=None, description="so many ways for the lead, all others for the antagonists")
    lead_ways: Ways | None = Field(default=None, description="so many ways for the lead, which runs alone: sensitivity")
    overlap: Ways | None = Field(
        default=None, description="so many ways shared between the lead's part ('lead': 50% if left out) and the others"
    )
    antagonist_cap: Ways | None = Field(
        default=None, description="so many ways at most for the antagonists; the lead has all, or those of 'lead'"
    )
    masks: dict[Name, MaskOf] | None = Field(
        default=None, description="way masks written out, by role (lead, antagonists), 'rest' or workload"
    )
    lead: Ways | None = Field(default=None, description="ways of the lead beside 'overlap' or 'antagonist_cap'")
    position: Positions = Field(
        default=("low",), description="where the lead's ways lie: low, high, the number of its first way, or a list"
    )
    code: Ways | None = Field(
        default=None, description="so many of the lead's ways for code alone, the others for data (resctrl with cdp)"
    )
    bandwidth: dict[Name, Rates] | None = Field(
        default=None, description="throttles of memory bandwidth, by role (lead, antagonists) or workload"
    )

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        kinds = [kind for kind in GENERATORS if getattr(self, kind) is not None]
        wrong = {
            f"one of {', '.join(GENERATORS)}, or 'bandwidth', and not {' and '.join(kinds) or 'neither'}": len(kinds)
            > 1
            or not (kinds or self.bandwidth),
            "'lead' beside 'overlap' or 'antagonist_cap' only": self.lead is not None
            and not {"overlap", "antagonist_cap"} & set(kinds),
            "no 'position' beside masks or bandwidth alone: nothing is placed": self.position != ("low",)
            and not set(kinds) - {"masks"},
            "the positions low and high only, but beside 'split' and 'lead_ways'": not set(self.position) <= set(SIDES)
            and not {"split", "lead_ways"} & set(kinds),
            "no 'code' without ways of the lead's own (split, lead_ways, overlap, or 'lead')": self.code is not None
            and not ({"split", "lead_ways", "overlap"} & set(kinds) or self.lead),
            "a mask or a throttle for some member": self.bandwidth == {}
            or (self.masks is not None and not set(self.masks) - {"rest"}),
            "one mask for the rest of the machine, not code and data apart": any(
                who == "rest" and mask.code is not None for who, mask in (self.masks or {}).items()
            ),
            "no throttle for the rest of the machine, which is never throttled": "rest" in (self.bandwidth or ()),
            "no throttle for anybody but the lead beside 'lead_ways': it runs alone": "lead_ways" in kinds
            and bool(set(self.bandwidth or ()) & {"antagonists"}),
        }
        for expected, holds in wrong.items():
            if holds:
                raise ValueError(expected)
        return self

    @property
    def kind(self) -> str:
        """Which of its keys makes the partitions."""
        return next((kind for kind in GENERATORS if getattr(self, kind) is not None), "bandwidth")

    @property
    def named(self) -> list[str]:
        """The workloads that it names."""
        return [name for name in (*(self.masks or ()), *(self.bandwidth or ())) if name not in (*ROLES, "rest")]


class CacheKeys(Written):
    """What is tried on the last-level cache, and how it is watched; more in docs/partitions.md."""

    sweeps: list[Sweep] = Field(default_factory=list, description="partitions to try on every mix; none if left out")
    only: list[Name] = Field(
        default_factory=list, description="of these partitions, by their names, only these; all of them if left out"
    )
    rest: Literal["antagonists", "all"] | None = Field(
        default=None,
        description="ways that everybody else on the machine has under a partition: the antagonists', which is the "
        "default where this user may set them, or all",
    )
    beyond_site: bool = Field(
        default=False,
        description="whether members leave the class of service in which they are found, which an administrator may "
        "have narrowed, and have all ways and all bandwidth; everybody else on the machine never does",
    )
    avoid_shared: bool = Field(default=False, description="whether ways that I/O uses too are left out of all masks")
    prefetchers: Prefetching = Field(
        default=("on",),
        description="on, off, or both: with off every mix is also measured while the cores of its members prefetch "
        "nothing, as the partition prefetchers-off; on is as the machine is found",
    )
    monitor: float = Field(
        default=10.0,
        ge=0,
        le=FASTEST_MONITOR,
        description="readings of occupancy and bandwidth in a second of a window; 0 for none",
    )
    driver: Literal["resctrl", "pqos"] | Name | Rehearsal = Field(
        default="resctrl",
        description="what shares the cache out: the kernel's resctrl or, where that cannot be used, Intel's pqos; the "
        "name of a plug-in's allocator (castmates help plugins); or rehearse:MACHINE, which changes nothing (castmates "
        "help partitions)",
    )


# The key `recommend` of a study: which loss of the lead can be borne.

MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
LATENCY = "a time such as 2 ms, 500 us or 0.1 s"


TIME = r"(\d+(?:\.\d+)?)\s*(us|ms|s)"


def _latency(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(TIME, value.strip(), re.ASCII) or milliseconds(value) <= 0:
        raise ValueError(LATENCY)
    return value


def milliseconds(text: str) -> float:
    """`2 ms` is 2, `500 us` is 0.5."""
    found = re.fullmatch(TIME, text.strip(), re.ASCII)
    assert found, text
    return float(found[1]) * MILLISECONDS[found[2]]


Latency = Annotated[
    str,
    BeforeValidator(_latency),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?\s*(us|ms|s)$"}),
]


class RecommendKeys(Written):
    """What a partition is recommended for."""

    lead_loss: LossPercent | None = Field(
        default=None,
        description="what the lead may lose of its rate alone, at most, such as 3%; with it the report "
        "names the smallest lead mask that keeps the limit",
    )
    latency: dict[Literal["p50", "p95", "p99"], Latency] = Field(
        default_factory=dict,
        description="how long requests to open-loop services may take, such as {p99: 2 ms}; with it the report names "
        "the highest load that keeps the limit, alone and beside each antagonist (castmates help services)",
    )

    @property
    def limits_ms(self) -> dict[str, float]:
        """The limits of latencies in ms, by quantile."""
        return {name: milliseconds(text) for name, text in self.latency.items()}
