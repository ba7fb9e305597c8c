"""A write to schemata: every line is parsed and staged first, then all is applied, or nothing."""

import errno

from castmates.rdt.fake.controls import EXCLUSIVE, Controls, Modes, Schema, first_run
from castmates.rdt.fake.kernel import Status
from castmates.rdt.fake.shape import Throttle, Ways
from castmates.rdt.fake.texts import c_string, refusal, strip, unsigned

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
