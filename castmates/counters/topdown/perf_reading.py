"""Recognises the kind of output, and reads it."""

import re
from collections.abc import Iterator, Mapping

from castmates.counters.topdown.perf_csv import (
    Line,
    Metric,
    Place,
    Report,
    counted,
    number,
    parse_csv,
    pmu_of,
    unit_and_name,
)
from castmates.errors import CastmatesError


def parse(text: str) -> Report:
    """Read what `perf stat -j` or `perf stat -x` printed, in whichever version."""
    rows = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not rows:
        raise CastmatesError("perf stat printed nothing: it ended before it had counted.")
    return parse_json(text) if rows[0].startswith(("{", "[")) else parse_csv(text)


# What `perf stat -j` prints.
#
# What perf prints is not always JSON: a comma before the closing brace (6.13), `nan` and decimal commas outside of
# quotes (to 6.2), several objects on a line (metrics only, 6.1). So it is scanned for pairs, and between them may be
# nothing but braces and commas.

_PAIR = re.compile(
    r'"(?P<key>(?:[^"\\]|\\.)*)"\s*:\s*'
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[-+]?(?:nan|inf|\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?)))'
)
_BETWEEN = re.compile(r"[{}\s,\[\]]*")
_PLACES = ("core", "cpu", "socket", "die", "cluster", "cache", "node", "thread")
_KEYS = {
    *_PLACES, "interval", "cgroup", "aggregate-number", "counters", "counter-value", "unit", "event", "variance",
    "event-runtime", "pcnt-running", "metric-value", "metric-unit", "metric-threshold", "metricgroup",
}  # fmt: skip
_NOTHING = ("", "(null)")

Object = Mapping[str, str]


def parse_json(text: str) -> Report:
    """Read what one perf printed."""
    lines: list[Line] = []
    metrics: list[Metric] = []
    group, running, pmu = "", None, ""
    heads: list[str] = []  # of metrics that follow without a name (metrics only, 6.0 and 6.1)
    for row, pairs in _objects(text):
        place, own = _place(pairs), _share(pairs.get("pcnt-running"))
        if "metricgroup" in pairs:
            group, running = pairs["metricgroup"], own
            pmu = pmu_of(group)
        elif pairs.keys() == {"unit"}:
            heads.append(pairs["unit"])
        elif "counter-value" in pairs:
            lines.append(_line(row, pairs, place, own))
            group, running, pmu = "", own, pmu_of(lines[-1].event)
        if pairs.get("metric-unit", "") not in _NOTHING:
            metrics.append(_metric(pairs["metric-unit"], pairs, place, group, running if own is None else own, pmu))
        elif "metric-value" in pairs and "counter-value" not in pairs and heads:
            metrics.append(_metric(heads[len(metrics) % len(heads)], pairs, place, group, running, pmu))
        elif not {"counter-value", "metricgroup", "metric-value"} & pairs.keys():
            metrics += _only_metrics(row, pairs, place)
    if not lines and not metrics:
        raise CastmatesError('perf stat printed no count: expected a line with "counter-value" or a metric.')
    return Report(tuple(lines), tuple(metrics))


def _objects(text: str) -> Iterator[tuple[int, Object]]:
    """Yield each object with the number of its line."""
    for row, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        # Braces stand inside no value that perf prints, but for an odd event's name.
        for piece in re.split(r"(?<=[}])\s*(?=[{])", line):
            if pairs := _pairs(row, piece):
                yield row, pairs


def _pairs(row: int, piece: str) -> Object:
    pairs: dict[str, str] = {}
    at = 0
    while True:
        between = _BETWEEN.match(piece, at)
        at = between.end() if between else at
        if at == len(piece):
            return pairs
        pair = _PAIR.match(piece, at)
        if pair is None:
            raise CastmatesError(
                f'line {row} is not JSON of perf stat: expected a pair like "event" : "cycles" at '
                f"'{piece[at : at + 40].strip()}'; give what `perf stat -j` wrote, whole."
            )
        pairs[pair["key"]] = pair["quoted"] if pair["quoted"] is not None else pair["bare"]
        at = pair.end()


def _place(pairs: Object) -> Place:
    where = next((f"CPU{pairs[key].removeprefix('CPU')}" if key == "cpu" else pairs[key] for key in _PLACES
                  if key in pairs), "")  # fmt: skip
    return Place(number(pairs["interval"]) if "interval" in pairs else None, where.strip(), pairs.get("cgroup", ""))


def _line(row: int, pairs: Object, place: Place, running: float | None) -> Line:
    text = pairs["counter-value"]
    value, status = counted(text, number(text), running)
    if "event" not in pairs or (value is None and not text.startswith("<")):
        raise CastmatesError(f"line {row} of perf stat's JSON has the counter-value '{text}' and no event or number.")
    spread, runtime = number(pairs.get("variance", "")), number(pairs.get("event-runtime", ""))
    return Line(
        pairs["event"],
        value,
        status,
        pairs.get("unit", ""),
        # perf prints 100 % of no time at all for what it could not count
        running if value is not None else None,
        None if runtime is None else int(runtime),
        None if spread is None else spread / 100,
        place,
    )


def _metric(text: str, pairs: Object, place: Place, group: str, running: float | None, pmu: str) -> Metric:
    unit, name = unit_and_name(text)
    value = number(pairs.get("metric-value", ""))
    return Metric(name, value, unit, group, running, pmu, place)


def _only_metrics(row: int, pairs: Object, place: Place) -> Iterator[Metric]:
    """Read metrics as separate pairs: --metric-only from 6.2 on."""
    for key, text in pairs.items():
        if key in _KEYS:
            continue
        value = number(text)
        if value is None and text.lower() not in ("none", "nan", "-nan", "inf", ""):
            raise CastmatesError(f"line {row} of perf stat's JSON has the key '{key}', which is no metric: '{text}'.")
        unit, name = unit_and_name(key)
        yield Metric(name, value, unit, place=place)


def _share(text: str | None) -> float | None:
    value = number(text) if text is not None else None
    return None if value is None else value / 100
