"""The layout of the phases file (standard library only, Python 3.10 on).

docs/phases.md describes it for any language; castmates_phases.h has it for C.
"""

import struct

MAGIC = b"CASTPHAS"
VERSION = 1
CAPACITY = 65536
NOTHING = -1  # no step, no epoch, no count

HEADER = struct.Struct("8sIIIIQIIQ")  # magic, version, capacity, pid, counters, head, names, domains, dropped
PID_AT, NAMES_AT, DOMAINS_AT = 4, 8, 9  # in 4-byte words
HEAD_AT, DROPPED_AT, OPEN_AT, CUT_AT = 3, 5, 6, 7  # in 8-byte words

COUNTER_TABLE, COUNTER_SLOT, MOST_COUNTERS, COUNTER_BYTES = 64, 64, 8, 55
STATUS_AT = COUNTER_BYTES + 1  # of a counter's slot; behind it the flags
# Domain 0 has no name. A table without even that one: only phases of no domain are wanted.
DOMAIN_TABLE, DOMAIN_SLOT, MOST_DOMAINS, DOMAIN_BYTES = COUNTER_TABLE + MOST_COUNTERS * COUNTER_SLOT, 64, 16, 63
NAME_TABLE, NAME_SLOT, MOST_NAMES, NAME_BYTES = DOMAIN_TABLE + MOST_DOMAINS * DOMAIN_SLOT, 128, 512, 123
PLACE = struct.Struct("HH")  # before a name in its slot: its domain, and what it is the name of

PHASE, RANGE, INSTANT, EPOCH = range(1, 5)  # what a record is of
TYPES = {PHASE: "phase", RANGE: "range", INSTANT: "instant", EPOCH: "epoch"}
RECORDS = NAME_TABLE + MOST_NAMES * NAME_SLOT
# Begin, end, step, epoch, name, type and flags, threads that began and ended it, bytes of payload, reserved; behind it
# a number for each counter, and the room for the payload.
RECORD = struct.Struct("4q6Iq")
TYPE_AT, LENGTH_AT = 36, 48  # bytes into it
PAYLOAD_BYTES = 64
PAYLOAD_LOST = 1 << 8  # flag beside the type: the payload was too long


def record_bytes(counters: int) -> int:
    """The size of a record."""
    return RECORD.size + 8 * counters + PAYLOAD_BYTES
