"""What every CLOSID may take in every domain: values, defaults of new groups, overlaps, and how files show them."""

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from castmates.rdt.fake.kernel import Kernel
from castmates.rdt.fake.shape import Shape
from castmates.rdt.fake.status import Status
from castmates.rdt.fake.texts import refusal

EXCLUSIVE = "exclusive"
UNLIMITED_MBPS = 0xFFFFFFFF
Modes = Mapping[int, str]  # CLOSIDs in use -> the mode of their group


@dataclass(eq=False)
class Schema:
    """One line of schemata."""

    name: str
    masks: bool  # of ways; otherwise bandwidth
    closids: int
    default: int
    slots: int  # of the hardware; more than `closids` with CDP
    values: dict[int, list[int]] = field(default_factory=dict)  # domain -> value by CLOSID
    peer: "Schema | None" = None  # data's is code, code's is data


class Controls:
    """All schemata of one mount."""

    def __init__(self, shape: Shape, kernel: Kernel, domains: Iterable[int], cdp: bool, mbps: bool) -> None:
        self.shape, self.kernel, self.mbps = shape, kernel, mbps
        self.schemas = [*_bandwidth_schemas(shape, mbps), *_mask_schemas(shape, cdp)]
        for domain in domains:
            self.add_domain(domain)
        self.closids = min((schema.closids for schema in self.schemas), default=0)
        self._free = set(range(1, self.closids))
        self.io = False  # whether I/O has the highest CLOSID
        self._name_width = max((len(schema.name) for schema in self.schemas), default=0)
        if shape.ways and shape.cdp:
            self._name_width = max(self._name_width, len("L3DATA"))
        throttle_digits = [shape.throttle.digits] if shape.throttle else []
        self._digits = max([(shape.ways + 3) // 4, *throttle_digits])

    def schema(self, name: str, closid: int) -> Schema | None:
        """Find a line by its name."""
        return next((each for each in self.schemas if each.name == name and closid < each.closids), None)

    def take_closid(self) -> int:
        """Take the lowest free CLOSID."""
        if not self._free:
            raise refusal(errno.ENOSPC)
        closid = min(self._free)
        self._free.remove(closid)
        return closid

    def give_closid(self, closid: int) -> None:
        """Give one back."""
        self._free.add(closid)

    def give_to_io(self, wanted: bool, status: Status) -> None:
        """Give the highest CLOSID to I/O, or take it back."""
        highest = self.closids - 1
        if wanted == self.io:
            return
        if wanted and highest not in self._free:
            status.say(f"CLOSID (ctrl_hw_id) {highest} for io_alloc is used by a group")
            raise refusal(errno.ENOSPC)
        self.io = wanted
        self._free ^= {highest}

    @property
    def free_closids(self) -> frozenset[int]:
        """CLOSIDs that no group has."""
        return frozenset(self._free)

    def add_domain(self, domain: int) -> None:
        """Begin with no limits there, whatever groups had before the domain went."""
        for schema in self.schemas:
            schema.values[domain] = [schema.default] * schema.slots
            schema.values = dict(sorted(schema.values.items()))

    def drop_domain(self, domain: int) -> None:
        """Forget what groups may take there."""
        for schema in self.schemas:
            del schema.values[domain]

    def show(self, closid: int) -> str:
        """Write schemata."""
        return "".join(
            f"{schema.name:>{self._name_width}}:"
            + ";".join(
                f"{domain}={self._show_value(schema, values[closid])}" for domain, values in schema.values.items()
            )
            + "\n"
            for schema in self.schemas
            if closid < schema.closids
        )

    def _show_value(self, schema: Schema, value: int) -> str:
        if not self.kernel.pads_values:
            return f"{value:x}" if schema.masks else f"{value}"
        return f"{value:0{self._digits}x}" if schema.masks else f"{value:{self._digits}d}"

    def show_sizes(self, closid: int) -> str:
        """Write size: bytes for masks, bandwidth as it is."""
        way = self.shape.cache_bytes // self.shape.ways if self.shape.ways else 0
        return "".join(
            f"{schema.name:>{self._name_width}}:"
            + ";".join(
                f"{domain}={values[closid].bit_count() * way if schema.masks else values[closid]}"
                for domain, values in schema.values.items()
            )
            + "\n"
            for schema in self.schemas
        )

    def show_usage(self, schema: Schema, modes: Modes) -> str:
        """Write bit_usage: who uses each way."""
        return ";".join(f"{domain}={self._usage(schema, domain, modes)}" for domain in schema.values) + "\n"

    def _usage(self, schema: Schema, domain: int, modes: Modes) -> str:
        software = exclusive = 0
        for closid, mode in modes.items():
            if mode == EXCLUSIVE:
                exclusive |= schema.values[domain][closid]
            else:
                software |= schema.values[domain][closid]
        letters = {(True, True): "X", (True, False): "H", (False, True): "S"}
        return "".join(
            letters.get(
                (bool(self.shape.shareable >> way & 1), bool(software >> way & 1)), "E" if exclusive >> way & 1 else "0"
            )
            for way in reversed(range(self.shape.ways))
        )

    def overlaps(self, schema: Schema, domain: int, mask: int, closid: int, modes: Modes, exclusive: bool) -> bool:
        """Check whether others use some of these ways: exclusive groups only, or all groups and I/O."""
        if not exclusive and mask & self.shape.shareable:
            return True
        kinds = [schema] if schema.peer is None else [schema, schema.peer]
        return any(
            mask & kind.values[domain][other]
            for kind in kinds
            for other, mode in modes.items()
            if other != closid and (mode == EXCLUSIVE or not exclusive)
        )

    def may_be_exclusive(self, closid: int, modes: Modes, status: Status) -> bool:
        """Test whether a group's ways are its own everywhere."""
        masks = [schema for schema in self.schemas if schema.masks]
        if not masks:
            status.say("Cannot be exclusive without CAT/CDP")
            return False
        for schema in masks:
            for domain, values in schema.values.items():
                if self.overlaps(schema, domain, values[closid], closid, modes, exclusive=False):
                    status.say("Schemata overlaps")
                    return False
        return True

    def begin(self, closid: int, modes: Modes, status: Status) -> None:
        """Give a new group what it starts with: the first run of ways that are unused or shared, and all bandwidth."""
        for schema in self.schemas:
            if not schema.masks:
                new = dict.fromkeys(schema.values, schema.default)
            else:
                new = {domain: self._first_mask(schema, domain, closid, modes) for domain in schema.values}
            for domain, value in new.items():
                if schema.masks and value.bit_count() < self.shape.least_bits:
                    status.say(f"No space on {schema.name}:{domain}")
                    raise refusal(errno.ENOSPC)
            for domain, value in new.items():
                schema.values[domain][closid] = value

    def _first_mask(self, schema: Schema, domain: int, closid: int, modes: Modes) -> int:
        usable = used = self.shape.shareable
        for other, mode in modes.items():
            if other != closid:
                value = schema.values[domain][other]
                value |= schema.peer.values[domain][other] if schema.peer else 0
                used |= value
                usable |= 0 if mode == EXCLUSIVE else value
        return first_run(usable | self.shape.full & ~used)


def first_run(mask: int) -> int:
    """Keep the lowest run of ones."""
    lowest = mask & -mask
    return mask & ~(mask + lowest)


def _bandwidth_schemas(shape: Shape, mbps: bool) -> list[Schema]:
    if shape.throttle is None:
        return []
    default = UNLIMITED_MBPS if mbps else shape.throttle.most
    return [Schema("MB", False, shape.throttle.closids, default, shape.throttle.closids)]


def _mask_schemas(shape: Shape, cdp: bool) -> list[Schema]:
    if not shape.ways:
        return []
    if not cdp:
        return [Schema("L3", True, shape.closids, shape.full, shape.closids)]
    data, code = (Schema(name, True, shape.closids // 2, shape.full, shape.closids) for name in ("L3DATA", "L3CODE"))
    data.peer, code.peer = code, data
    return [data, code]
