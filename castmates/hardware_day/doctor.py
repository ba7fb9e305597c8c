"""The steps that are trials: commands of the doctor."""

from collections.abc import Callable
from contextlib import suppress

from castmates.files import mapping_in
from castmates.hardware_day.steps import Place, bounded
from castmates.machine.trial_records import MEMORY_PEAK, RDT, TrialRecords
from castmates.protocols import Say

Run = Callable[[Place, float, Say], str]


def capture(place: Place, seconds: float, say: Say) -> str:
    """Write the machine into a file."""
    words = ["doctor", "--capture", str(place.capture_file.absolute())]
    return bounded(words, place.log_file("capture"), seconds, say).why


def recorded(option: str, name: str, records: TrialRecords) -> Run:
    """A trial that leaves its record in the cache; a copy without names is kept."""

    def run(place: Place, seconds: float, say: Say) -> str:
        ended = bounded(["doctor", f"--{option}"], place.log_file(option), seconds, say)
        record = None if ended.why else records.read(place.cache)
        if record is None:
            return ended.why or "it left no record."
        place.keep(name, record)
        return ""

    return run


def printed(option: str, name: str, *words: str) -> Run:
    """A trial that prints its record; a bad verdict, with status 1, is a result as well."""

    def run(place: Place, seconds: float, say: Say) -> str:
        asked = ["doctor", f"--{option}", *words, "--format", "json"]
        ended = bounded(asked, place.log_file(option), seconds, say, aloud=False)
        if ended.code in (0, 1):
            with suppress(ValueError):
                place.keep(name, mapping_in(ended.printed.encode()))
                return ""
        return ended.why or "it left no record."

    return run


memory_peak = recorded("memory-peak", "memory-peak", MEMORY_PEAK)
verify_rdt = recorded("verify-rdt", "rdt", RDT)
verify_counters = printed("verify-counters", "counters")


def truth(minutes: float) -> Run:
    """The trial of known losses, for so long."""
    return printed("truth", "truth", "--minutes", f"{minutes:g}")
