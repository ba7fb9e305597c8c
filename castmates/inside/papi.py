"""The second method: PAPI, the library that the extra `papi` (python_papi) brings, or the system's own.

It is called through ctypes: the package's own binding cannot ask for inheritance, and imports cffi.
"""

import ctypes
import ctypes.util
import functools
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.inside.events import event_of
from castmates.inside.readings import Reading, Refusal, for_every_thread, own_threads
from castmates.linux.perf_event import SOFTWARE, paranoid

COMPONENT = b"perf_event"
VERSIONS = tuple(major << 24 | minor << 16 for major in (7, 6, 5) for minor in (3, 2, 1, 0))
_INHERIT = 28  # an option of PAPI_set_opt
_OPTION = 256  # words, more than any option has
_USER, _KERNEL = 1, 2  # domains
_NO_RIGHT = -15  # PAPI_EPERM
MOST_PARANOID = 2  # kernel.perf_event_paranoid; PAPI takes 3 for a kernel without counters
_PRESETS = {
    "instructions": "PAPI_TOT_INS",
    "cycles": "PAPI_TOT_CYC",
    "branches": "PAPI_BR_INS",
    "branch-misses": "PAPI_BR_MSP",
}
ONE_THREAD = (
    "only the thread that opened them is counted: PAPI, which tries with the event instructions whether it can attach "
    "to threads and inherit, cannot here"
)
NOWHERE = (
    "PAPI is not here: pip install 'castmates[papi]', or install the system's own (libpapi on Debian, papi on Fedora); "
    "method='perf' needs neither"
)


class PapiCounters:
    """PAPI's counters of every thread of a process, inherited by threads and children that these start later."""

    source = "PAPI"

    def __init__(self, events: Sequence[str], threads: Callable[[], list[int]] = own_threads) -> None:
        """Open them for this process, or for another one, whose threads `threads` lists."""
        self._threads = threads
        self._papi, self._component, self._about = _library()
        self.notes: dict[str, str] = {}
        self.misses = ""
        self._sets: list[int] = []
        wanted, self.refused = self._known(events, _USER | _KERNEL)
        if any(refusal.status == "not counted" for refusal in self.refused.values()):
            wanted, self.refused = self._known([event for event in events if not _in_kernel_only(event)], _USER)
            self.notes = dict.fromkeys(wanted, "user mode only")
            why = "it happens in the kernel, which may not be counted here"
            self.refused |= {event: Refusal("not counted", why) for event in events if _in_kernel_only(event)}
        if wanted:
            self._open(wanted.values())
        self.names = tuple(wanted)
        self._values = (ctypes.c_longlong * len(self.names))()

    def read(self) -> tuple[int, ...]:
        """Read the totals so far: a call, and in it a system call for each event, for each thread."""
        values, totals = self._values, [0] * len(self.names)
        for number in self._sets:
            _must(self._papi.PAPI_read(number, values), self._papi)
            totals = [total + value for total, value in zip(totals, values, strict=True)]
        return tuple(totals)

    def readings(self) -> tuple[Reading, ...]:
        """Read the totals so far; PAPI counts all of the time or not at all, and reports no times."""
        return tuple(Reading(total, 0, 0) for total in self.read())

    def close(self) -> None:
        """Stop and forget them."""
        self._close(self._sets)
        self._sets, self.names = [], ()

    def _known(self, events: Sequence[str], domain: int) -> tuple[dict[str, bytes], dict[str, Refusal]]:
        """Try each event by itself, in user mode or with the kernel; give the names of those that count."""
        _must(self._papi.PAPI_set_cmp_domain(domain, self._component), self._papi)
        known: dict[str, bytes] = {}
        refused: dict[str, Refusal] = {}
        for event in events:
            number, name = self._new_set(), _name_of(event)
            status = self._papi.PAPI_add_named_event(number, name)
            self._close([number])
            if status == 0:
                known[event] = name
            else:
                why = f"{self._about} has no counter for it here: {_said(status, self._papi)}"
                refused[event] = Refusal("not counted" if status == _NO_RIGHT else "not supported", why)
        return known, refused

    def _open(self, names: Iterable[bytes]) -> None:
        """Open them for every thread; where PAPI cannot, for the calling one, with a note."""
        try:
            opened = for_every_thread(lambda tid: self._of_thread(tid, names), self._close, self._threads)
            self._sets, self.misses = opened
        except CastmatesError:
            if self._threads is not own_threads:
                raise CastmatesError(f"PAPI cannot be put on another process here: {ONE_THREAD}") from None
            self._sets, self.misses = [self._of_thread(0, names)], ONE_THREAD

    def _of_thread(self, tid: int, names: Iterable[bytes]) -> int:
        """Open them for one thread and what it starts; 0 is the calling thread alone."""
        papi, number = self._papi, self._new_set()
        try:
            if tid:
                _must(papi.PAPI_attach(number, ctypes.c_ulong(tid)), papi)
                _must(papi.PAPI_set_opt(_INHERIT, (ctypes.c_int * _OPTION)(number, 1)), papi)
            for name in names:
                _must(papi.PAPI_add_named_event(number, name), papi)
            _must(papi.PAPI_start(number), papi)
        except BaseException:
            self._close([number])
            raise
        return number

    def _new_set(self) -> int:
        number = ctypes.c_int(-1)
        _must(self._papi.PAPI_create_eventset(ctypes.byref(number)), self._papi)
        _must(self._papi.PAPI_assign_eventset_component(number, self._component), self._papi)
        return number.value

    def _close(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._papi.PAPI_stop(number, None)
            self._papi.PAPI_cleanup_eventset(number)
            self._papi.PAPI_destroy_eventset(ctypes.byref(ctypes.c_int(number)))


def why_not() -> str | None:
    """Explain in one sentence why PAPI cannot count here; None where it can."""
    try:
        _library()
    except CastmatesError as reason:
        return str(reason)
    return None


@functools.cache
def _library() -> tuple[ctypes.CDLL, int, str]:
    """Load the first PAPI whose perf_event component works: a release that does not know the processor has none."""
    reasons = []
    for where, path in _places():
        try:
            papi = ctypes.CDLL(path)
            version = next((v for v in VERSIONS if papi.PAPI_library_init(v) == v), 0)
        except (OSError, AttributeError) as error:
            reasons.append(f"{where} cannot be loaded ({error})")
            continue
        about = f"{where} ({version >> 24}.{version >> 16 & 255})"
        if not version:
            reasons.append(f"{where} is of a release that is not known here")
        elif why := _disabled(papi):
            reasons.append(f"{about} {why}")
        else:
            return papi, papi.PAPI_get_component_index(COMPONENT), about
    raise CastmatesError("; ".join(reasons) if reasons else NOWHERE)


def _places() -> Iterator[tuple[str, str]]:
    package = importlib.util.find_spec("pypapi")
    for folder in (package.submodule_search_locations or []) if package else []:
        for file in sorted(Path(folder).glob("_papi*.so")):
            yield "python_papi's PAPI", str(file)
    if system := ctypes.util.find_library("papi"):
        yield "the system's PAPI", system


def _disabled(papi: ctypes.CDLL) -> str:
    """Why the component that counts does not work; an event of the kernel's own is the proof that it does."""
    component = papi.PAPI_get_component_index(COMPONENT)
    if component < 0:
        return "was built without counters of the processor"
    if papi.PAPI_query_named_event(b"perf::TASK-CLOCK") == 0 or papi.PAPI_query_named_event(b"PAPI_TOT_INS") == 0:
        return ""
    level = paranoid()
    if level.isdecimal() and int(level) > MOST_PARANOID:
        return (
            f"gives up where kernel.perf_event_paranoid is {level}, which is Debian's default, and for root too: "
            f"sudo sysctl kernel.perf_event_paranoid={MOST_PARANOID}"
        )
    return "does not know this processor, so that it counts nothing on it"


def _name_of(event: str) -> bytes:
    """PAPI's name of an event: a preset, or the kernel's own; what is not perf's is taken as it is."""
    if event in _PRESETS:
        return _PRESETS[event].encode()
    try:
        known = event_of(event)
    except CastmatesError:
        return event.encode()
    return f"perf::{event.upper()}".encode() if known.kind == SOFTWARE else event.encode()


def _in_kernel_only(event: str) -> bool:
    """Whether an event happens in the kernel alone; PAPI's own names are of the processor's events."""
    try:
        return event_of(event).in_kernel_only
    except CastmatesError:
        return False


def _must(status: int, papi: ctypes.CDLL) -> None:
    if status != 0:
        raise CastmatesError(f"PAPI failed: {_said(status, papi)}; method='perf' does without it.")


def _said(status: int, papi: ctypes.CDLL) -> str:
    papi.PAPI_strerror.restype = ctypes.c_char_p
    said = papi.PAPI_strerror(status)
    return said.decode() if said else f"status {status}"
