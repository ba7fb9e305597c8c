"""Which thread a host's line in a trace of TensorFlow or JAX is of: its number is a hash, which can be undone.

The frameworks number a line by libstdc++'s hash of `std::thread::id`, MurmurHash64A of the eight bytes of pthread_t.
Of eight bytes each of its steps can be undone, so the number gives back pthread_t: the address of the thread's control
block. A number that is a thread's number already, as other builds write it, stays what it is.
"""

from pathlib import Path

from castmates.errors import CastmatesError
from castmates.traces.wire import NotProtobuf
from castmates.traces.xspace import Space
from castmates.workloads.tfmodels.xspace import HOST

_FACTOR, _SEED, _SHIFT, _LENGTH = 0xC6A4A7935BD1E995, 0xC70F6907, 47, 8
_ALL = 2**64 - 1
_UNDONE = pow(_FACTOR, -1, 2**64)
LARGEST_TID = 2**22  # PID_MAX_LIMIT of 64-bit kernels
ADDRESSES = 2**47  # of a program on x86-64; on 64-bit ARM they may be longer by a bit
ALIGNED = 16  # bytes, at least, of a control block


def address_of(line: int) -> int | None:
    """The address of a thread's control block from the number of its line; None where it is no hash of one."""
    found = _undone(line & _ALL)
    return found if 0 < found < 2 * ADDRESSES and found % ALIGNED == 0 else None


def lines_of_host(file: Path) -> list[int]:
    """The numbers of the lines of a trace's host; none where it has no host or cannot be read."""
    try:
        with Space(file) as space:
            return [line.id for plane in space.planes() if plane.name == HOST for line in plane.lines()]
    except (CastmatesError, NotProtobuf):
        return []  # whoever reads all of it will report why


def _undone(number: int) -> int:
    number = _mixed(_mixed(number) * _UNDONE & _ALL) * _UNDONE & _ALL
    key = (number ^ _SEED ^ (_LENGTH * _FACTOR & _ALL)) * _UNDONE & _ALL
    return _mixed(key) * _UNDONE & _ALL


def _mixed(number: int) -> int:
    """Its own inverse, because the shift is longer than half the number."""
    return number ^ number >> _SHIFT
