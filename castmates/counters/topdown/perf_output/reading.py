"""Recognises the kind of output, and reads it."""

from castmates.counters.topdown.perf_output.csvs import parse_csv
from castmates.counters.topdown.perf_output.jsons import parse_json
from castmates.counters.topdown.perf_output.model import Report
from castmates.errors import CastmatesError


def parse(text: str) -> Report:
    """Read what `perf stat -j` or `perf stat -x` printed, in whichever version."""
    rows = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not rows:
        raise CastmatesError("perf stat printed nothing: it ended before it had counted.")
    return parse_json(text) if rows[0].startswith(("{", "[")) else parse_csv(text)
