"""What every CLOSID may take in every domain: values, defaults of new groups, overlaps, and how files show them."""

import errno
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from castmates.rdt.fake.kernel import Kernel, Status, c_string, refusal, strip, unsigned
from castmates.rdt.fake.shape import Shape, Throttle, Ways

EXCLUSIVE = "exclusive"
UNLIMITED_MBPS = 0xFFFFFFFF
CDP = {"L3": "cdp", "L2": "cdpl2"}  # the mount option of each resource
Modes = Mapping[int, str]  # CLOSIDs in use -> the mode of their group


@dataclass(eq=False)
class Schema:
    """One line of schemata."""

    name: str
    resource: str  # that it belongs to: L3, L2, MB, SMBA
    closids: int
    default: int
    slots: int  # of the hardware; more than `closids` with CDP
    ways: Ways | None = None  # where its values are masks
    throttle: Throttle | None = None  # where they are bandwidth
    values: dict[int, list[int]] = field(default_factory=dict)  # domain -> value by CLOSID
    peer: "Schema | None" = None  # data's is code, code's is data

    @property
    def masks(self) -> bool:
        """Whether its values are masks of ways."""
        return self.ways is not None


class Controls:
    """All schemata of one mount."""

    def __init__(
        self, shape: Shape, kernel: Kernel, domains: Mapping[str, Collection[int]], options: Collection[str]
    ) -> None:
        self.shape, self.kernel, self.mbps = shape, kernel, "mba_MBps" in options
        # The kernel puts every resource before those that it knew already.
        self.schemas = [*self._throttles(), *_masks(shape.second, options), *_masks(shape.last, options)]
        for resource, numbers in domains.items():
            for number in numbers:
                self.add_domain(resource, number)
        self.closids = min((schema.closids for schema in self.schemas), default=0)
        self._free = set(range(1, self.closids))
        self.io = False  # whether I/O has the highest CLOSID
        caches = [each for each in (shape.last, shape.second) if each]
        names = [len(schema.name) for schema in self.schemas]
        self._name_width = max([*names, *(len(f"{each.resource}DATA") for each in caches if each.cdp)], default=0)
        digits = [throttle.digits for throttle in (shape.throttle, shape.slow) if throttle]
        self._digits = max([*digits, *((each.ways + 3) // 4 for each in caches)], default=0)

    def _throttles(self) -> list[Schema]:
        kinds = (("SMBA", self.shape.slow), ("MB", self.shape.throttle))
        return [
            Schema(
                name,
                name,
                throttle.closids,
                UNLIMITED_MBPS if self.mbps and name == "MB" else throttle.most,
                throttle.closids,
                throttle=throttle,
            )
            for name, throttle in kinds
            if throttle
        ]

    def schema(self, name: str, closid: int) -> Schema | None:
        """Find a line by its name."""
        return next((each for each in self.schemas if each.name == name and closid < each.closids), None)

    def take_closid(self, dirt: Callable[[int], int] = lambda _: 0) -> int:
        """Take the lowest free CLOSID, or where that counts the one with the fewest dirty monitoring ids."""
        if not self._free:
            raise refusal(errno.ENOSPC)
        closid = min(self._free, key=lambda each: (dirt(each), each))
        self._free.remove(closid)
        return closid

    def give_closid(self, closid: int) -> None:
        """Give one back."""
        self._free.add(closid)

    def give_to_io(self, wanted: bool, modes: Modes, status: Status) -> None:
        """Give the highest CLOSID to I/O, or take it back."""
        highest = self.closids - 1
        if wanted == self.io:
            return
        if wanted and highest not in self._free:
            status.say(f"CLOSID (ctrl_hw_id) {highest} for io_alloc is used by a group")
            raise refusal(errno.ENOSPC)
        self.io = wanted
        self._free ^= {highest}
        for schema in self.schemas if wanted else ():
            if schema.ways and schema.resource == "L3":
                for domain in schema.values:
                    schema.values[domain][highest] = _first_mask(schema, schema.ways, domain, highest, modes)

    def masks_of_io(self, schema: Schema, status: Status) -> dict[int, int]:
        """Return the ways that I/O may fill in each domain; refused where it has no class."""
        if not self.io:
            status.say(f"io_alloc is not enabled on {schema.name}")
            raise refusal(errno.EINVAL)
        return {domain: values[self.closids - 1] for domain, values in schema.values.items()}

    @property
    def free_closids(self) -> frozenset[int]:
        """CLOSIDs that no group has."""
        return frozenset(self._free)

    def _of_level(self, resource: str) -> list[Schema]:
        """Schemas with the domains of a cache: throttles belong to the last-level one."""
        own = ("L2",) if resource == "L2" else ("L3", "MB", "SMBA")
        return [schema for schema in self.schemas if schema.resource in own]

    def add_domain(self, resource: str, domain: int) -> None:
        """Begin with no limits there, whatever groups had before the domain went."""
        for schema in self._of_level(resource):
            schema.values[domain] = [schema.default] * schema.slots
            schema.values = dict(sorted(schema.values.items()))

    def drop_domain(self, resource: str, domain: int) -> None:
        """Forget what groups may take there."""
        for schema in self._of_level(resource):
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

    def show_masks_of_io(self, schema: Schema, status: Status) -> str:
        """Write io_alloc_cbm."""
        status.clear()
        masks = self.masks_of_io(schema, status)
        return ";".join(f"{domain}={self._show_value(schema, mask)}" for domain, mask in masks.items()) + "\n"

    def _show_value(self, schema: Schema, value: int) -> str:
        if not self.kernel.pads_values:
            return f"{value:x}" if schema.masks else f"{value}"
        return f"{value:0{self._digits}x}" if schema.masks else f"{value:{self._digits}d}"

    def show_sizes(self, closid: int) -> str:
        """Write size: bytes for masks, bandwidth as it is. Sub-NUMA nodes, which divide a cache, do not count here."""
        return "".join(
            f"{schema.name:>{self._name_width}}:"
            + ";".join(f"{domain}={_size(schema.ways, values[closid])}" for domain, values in schema.values.items())
            + "\n"
            for schema in self.schemas
        )

    def show_usage(self, schema: Schema, modes: Modes) -> str:
        """Write bit_usage: who uses each way."""
        return ";".join(f"{domain}={self._usage(schema, domain, modes)}" for domain in schema.values) + "\n"

    def _usage(self, schema: Schema, domain: int, modes: Modes) -> str:
        assert schema.ways is not None
        software, exclusive, of_io = 0, 0, schema.ways.shareable
        for closid, mode in modes.items():
            if mode == EXCLUSIVE:
                exclusive |= schema.values[domain][closid]
            else:
                software |= schema.values[domain][closid]
        letters = {(True, True): "X", (True, False): "H", (False, True): "S"}
        return "".join(
            letters.get((bool(of_io >> way & 1), bool(software >> way & 1)), "E" if exclusive >> way & 1 else "0")
            for way in reversed(range(schema.ways.ways))
        )

    def overlaps(self, schema: Schema, domain: int, mask: int, closid: int, modes: Modes, exclusive: bool) -> bool:
        """Check whether others use some of these ways: exclusive groups only, or all groups and I/O."""
        if not exclusive and schema.ways and mask & schema.ways.shareable:
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
            new = dict.fromkeys(schema.values, schema.default)
            if schema.ways:
                new = {domain: _first_mask(schema, schema.ways, domain, closid, modes) for domain in schema.values}
                for domain, value in new.items():
                    if value.bit_count() < schema.ways.least_bits:
                        status.say(f"No space on {schema.name}:{domain}")
                        raise refusal(errno.ENOSPC)
            for domain, value in new.items():
                schema.values[domain][closid] = value


def first_run(mask: int) -> int:
    """Keep the lowest run of ones."""
    lowest = mask & -mask
    return mask & ~(mask + lowest)


def _first_mask(schema: Schema, ways: Ways, domain: int, closid: int, modes: Modes) -> int:
    usable = used = ways.shareable
    for other, mode in modes.items():
        if other != closid:
            value = schema.values[domain][other]
            value |= schema.peer.values[domain][other] if schema.peer else 0
            used |= value
            usable |= 0 if mode == EXCLUSIVE else value
    return first_run(usable | ways.full & ~used)


def _size(ways: Ways | None, value: int) -> int:
    return value if ways is None else value.bit_count() * (ways.cache_bytes // ways.ways)


def _masks(ways: Ways | None, options: Collection[str]) -> list[Schema]:
    if ways is None:
        return []
    if CDP[ways.resource] not in options:
        return [Schema(ways.resource, ways.resource, ways.closids, ways.full, ways.closids, ways)]
    data, code = (
        Schema(f"{ways.resource}{kind}", ways.resource, ways.closids // 2, ways.full, ways.closids, ways)
        for kind in ("DATA", "CODE")
    )
    data.peer, code.peer = code, data
    return [data, code]


# A write to schemata: every line is parsed and staged first, then all is applied, or nothing.

Staged = dict[tuple[str, int], int]  # schema's name, domain -> value


class Writer:
    """One write to the schemata of one group."""

    def __init__(self, controls: Controls, closid: int, modes: Modes, status: Status) -> None:
        self.controls, self.closid, self.modes, self.status = controls, closid, modes, status
        self.staged: Staged = {}

    def write(self, data: bytes) -> None:
        """Take what was written, which must end in a newline, and is read up to the first NUL."""
        for line in c_string(data[:-1]).split("\n"):
            name, colon, values = line.partition(":")
            name = strip(name)
            if not colon:
                raise self._refuse("Missing ':'")
            if not values:
                raise self._refuse(f"Missing '{name}' value")
            schema = self.controls.schema(name, self.closid)
            if schema is None:
                raise self._refuse(f"Unknown or unsupported resource name '{name}'")
            self._stage_line(schema, values)
        for schema in self.controls.schemas:
            for domain, values_by_closid in schema.values.items():
                if (schema.name, domain) in self.staged:
                    values_by_closid[self.closid] = self.staged[schema.name, domain]

    def write_for_io(self, schema: Schema, values: str) -> None:
        """Take the masks of I/O; those of code and of data are the same."""
        self._stage_line(schema, values)
        for kind in filter(None, (schema, schema.peer)):
            for (_, domain), value in self.staged.items():
                kind.values[domain][self.closid] = value

    def _stage_line(self, schema: Schema, line: str) -> None:
        rest: str | None = line
        while rest:
            part, semicolon, after = rest.partition(";")
            rest = after if semicolon else None
            number, equals, value = part.partition("=")
            try:
                domain = unsigned(number, 10)
            except OSError:
                equals = ""
            if not equals:
                raise self._refuse("Missing '=' or non-numeric domain")
            if domain not in schema.values:
                raise refusal(errno.EINVAL)  # the kernel gives no text
            self._stage(schema, domain, strip(value))

    def _stage(self, schema: Schema, domain: int, text: str) -> None:
        if (schema.name, domain) in self.staged:
            raise self._refuse(f"Duplicate domain {domain}")
        if schema.ways:
            self.staged[schema.name, domain] = self._mask(schema, schema.ways, domain, text)
        elif self._by_software(schema):
            # The software controller takes its value at once: a later line that is refused does not undo it.
            schema.values[domain][self.closid] = self._bandwidth(schema, text)
        else:
            self.staged[schema.name, domain] = self._bandwidth(schema, text)

    def _by_software(self, schema: Schema) -> bool:
        return self.controls.mbps and schema.name == "MB"

    def _mask(self, schema: Schema, ways: Ways, domain: int, text: str) -> int:
        try:
            mask = unsigned(text, 16)
        except OSError:
            raise self._refuse(f"Non-hex character in the mask {text}") from None
        if mask > ways.full or (mask == 0 and ways.least_bits > 0):
            raise self._refuse("Mask out of range")
        run = first_run(mask)
        if run != mask and not ways.sparse:
            raise self._refuse(f"The mask {mask:x} has non-consecutive 1-bits")
        if run.bit_count() < ways.least_bits:
            raise self._refuse(f"Need at least {ways.least_bits} bits in the mask")
        if self.controls.overlaps(schema, domain, mask, self.closid, self.modes, exclusive=True):
            raise self._refuse("Overlaps with exclusive group")
        exclusive = self.modes[self.closid] == EXCLUSIVE
        if exclusive and self.controls.overlaps(schema, domain, mask, self.closid, self.modes, exclusive=False):
            raise self._refuse("Overlaps with other group")
        return mask

    def _bandwidth(self, schema: Schema, text: str) -> int:
        cuts, throttle = self.controls.kernel.cuts_mbps, schema.throttle or Throttle()
        try:
            value = unsigned(text, 10, bits=64 if cuts else 32)
        except OSError:
            raise self._refuse(f"{'Non-decimal digit in' if cuts else 'Invalid'} MB value {text}") from None
        if self._by_software(schema):
            return -(-value // throttle.step) * throttle.step % (1 << 32) if cuts else value
        if not throttle.least <= value <= throttle.most:
            raise self._refuse(f"MB value {value} out of range [{throttle.least},{throttle.most}]")
        return throttle.kept(value)

    def _refuse(self, text: str) -> OSError:
        self.status.say(text)
        return refusal(errno.EINVAL)
