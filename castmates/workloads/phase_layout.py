"""The layout of the phases file, in both of its versions (standard library only, Python 3.10 on).

docs/phases.md describes it for any language; castmates_phases.h has it for C.
"""

import struct
from dataclasses import dataclass

MAGIC = b"CASTPHAS"
CAPACITY = 65536
MOST_COUNTERS = 8
COUNTER_BYTES = 55  # UTF-8
NOTHING = -1  # no step, no epoch, no count

HEADER = struct.Struct("8sIIIIQIIQ")  # magic, version, capacity, pid, counters, head, names, domains, dropped
PID_AT, NAMES_AT, DOMAINS_AT = 4, 8, 9  # in 4-byte words
HEAD_AT, DROPPED_AT, OPEN_AT, CUT_AT = 3, 5, 6, 7  # in 8-byte words; the last two are of version 2
COUNTER_TABLE, COUNTER_SLOT = 64, 64
STATUS_AT = COUNTER_BYTES + 1  # of a counter's slot; behind it the flags

# Of version 2 alone.
DOMAIN_TABLE, DOMAIN_SLOT, MOST_DOMAINS, DOMAIN_BYTES = COUNTER_TABLE + MOST_COUNTERS * COUNTER_SLOT, 64, 16, 63
PHASE, RANGE, INSTANT, EPOCH = range(1, 5)  # what a record is of
TYPES = {PHASE: "phase", RANGE: "range", INSTANT: "instant", EPOCH: "epoch"}
PAYLOAD_BYTES = 64
PAYLOAD_LOST = 1  # flag of a record: its payload was too long


@dataclass(frozen=True)
class Layout:
    """Where a version has its names and its records."""

    version: int
    name_table: int
    name_slot: int
    before_name: int  # bytes of a name's slot before its text
    name_bytes: int
    most_names: int
    plain_record: int  # what every record has; after it a number for each counter, and the payload
    payload_bytes: int

    @property
    def records(self) -> int:
        """Where the first record is."""
        return self.name_table + self.name_slot * self.most_names

    def record_bytes(self, counters: int) -> int:
        """The size of a record."""
        return self.plain_record + 8 * counters + self.payload_bytes


FIRST = Layout(1, COUNTER_TABLE + MOST_COUNTERS * COUNTER_SLOT, 64, 0, 63, 128, 32, 0)
SECOND = Layout(2, DOMAIN_TABLE + DOMAIN_SLOT * MOST_DOMAINS, 128, 4, 123, 512, 64, PAYLOAD_BYTES)
LAYOUTS = {layout.version: layout for layout in (FIRST, SECOND)}
