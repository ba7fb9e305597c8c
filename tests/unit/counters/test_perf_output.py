"""What perf prints is read the same whichever version printed it, and garbage is refused in a sentence."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.counters.topdown.perf_csv import parse_csv
from castmates.counters.topdown.perf_reading import parse
from castmates.errors import CastmatesError
from tests.unit.counters.perf_prints import for_machines, read
from tests.unit.snapshots import assert_as_before


def by_event(report):
    return {line.event: line for line in report.lines}


def refusal(text):
    """The message about it; "" where it can be read."""
    try:
        parse(text)
    except CastmatesError as told:
        return str(told)
    return ""


def values(report):
    return {metric.name: metric.value for metric in report.metrics}


@pytest.mark.parametrize("name", for_machines())
def test_every_count_and_metric_of_the_corpus_is_read(name):
    text = read(name)
    report = parse(text)
    if name.endswith("json.txt"):
        assert len(report.lines) == text.count('"counter-value"')
        told = re.findall(r'"metric-unit" : "([^"]+)"', text)
        assert [metric.name for metric in report.metrics][: len(told)] == [one.rpartition("  ")[2] for one in told]
    elif "metric-only" not in name:
        counts = [line for line in text.splitlines() if line and not re.match(r"#|,|\d+\.\d{9},,", line)]
        assert len(report.lines) == len(counts)
    for line in report.lines:
        assert (line.value is None) == (line.status in ("not supported", "not counted"))
        assert line.running is None or 0 <= line.running <= 1
        assert "," not in line.event or line.event == "cpu/UOPS_DECODED.DEC0,cmask=1/"


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("locale", ["plain", "decimal-comma"])
def test_counted_zero_not_counted_and_not_supported_are_three_things(form, locale):
    events = by_event(parse(read(f"recorded-6.1/{locale}.{form}.txt")))
    assert events["page-faults"].status == "counted"
    assert events["page-faults"].value == 48
    assert 0.7 < events["task-clock"].value < 0.9
    assert events["task-clock"].runtime_ns == pytest.approx(events["task-clock"].value * 1e6, rel=0.02)
    assert (events["instructions"].value, events["instructions"].status) == (None, "not supported")
    assert events["instructions"].running is None  # perf prints 100 %
    first, second, third = (
        line for line in parse(read(f"recorded-6.1/interval.{form}.txt")).lines if line.event == "page-faults"
    )
    assert (first.value, second.status, second.value, third.value, third.status) == (
        first.value, "not counted", None, 0.0, "counted")  # fmt: skip
    assert first.value > 70


@pytest.mark.parametrize("form", ["json", "csv"])
def test_columns_that_say_where_and_when(form):
    def places(name):
        return [
            (line.place.t_s is not None, line.place.where)
            for line in parse(read(f"recorded-6.1/{name}.{form}.txt")).lines
        ]

    assert places("per-cpu") == [(False, "CPU0"), (False, "CPU1")] * 3
    assert places("per-core") == [(False, "S0-D0-C0")] * 3 + [(False, "S0-D0-C1")] * 3
    assert places("per-core-interval")[:6] == [(True, "S0-D0-C0")] * 3 + [(True, "S0-D0-C1")] * 3
    assert {where for _, where in places("per-socket")} == {"S0"}
    assert {where for _, where in places("per-node")} == {"N0"}
    assert {where for _, where in places("per-thread")} == {"yes-28453"}
    assert [line.place.cgroup for line in parse(read(f"recorded-6.1/cgroup.{form}.txt")).lines] == ["/", "/"]
    spreads = [line.spread for line in parse(read(f"recorded-6.1/repeat.{form}.txt")).lines]
    assert spreads == pytest.approx([0.0197, 0.0069, 0.0] if form == "json" else [0.1021, 0.0123, 0.0])
    comma = parse(read(f"recorded-6.1/decimal-comma-interval.{form}.txt")).lines
    assert comma[3].spread == pytest.approx(14.5618 if form == "json" else 20.185)
    assert comma[3].place.t_s == pytest.approx(0.064, abs=0.001)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_the_summary_after_intervals_has_no_time(form):
    lines = [line for line in parse(read(f"recorded-6.1/summary.{form}.txt")).lines if line.event == "page-faults"]
    assert [line.place.t_s is None for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1].value == sum(line.value or 0 for line in lines[:-1]) > 0


def test_another_separator_is_found():
    lines = parse(read("recorded-6.1/semicolon.csv.txt")).lines
    assert [line.event for line in lines[:6]] == ["task-clock"] * 2 + ["page-faults"] * 2 + ["instructions"] * 2
    assert lines[3].value == 4336


@pytest.mark.parametrize(("form", "memory"), [("json", 50.22086), ("csv", 50.5)])
def test_groups_of_metrics(form, memory):
    report = parse(read(f"public/sapphire-rapids.{form}.txt"))
    level = {metric.name: metric.group for metric in report.metrics if metric.group}
    assert [name for name, group in level.items() if group == "TopdownL1"] == [
        "tma_backend_bound", "tma_bad_speculation", "tma_frontend_bound", "tma_retiring"]  # fmt: skip
    assert sum(group == "TopdownL2" for group in level.values()) == 8
    found = next(metric for metric in report.metrics if metric.name == "tma_memory_bound")
    assert (found.value, found.unit, found.running) == (memory, "%", 1.0)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_hybrid_processors_have_each_metric_twice_and_one_of_them_empty(form):
    found = [(one.group, one.value, one.running) for one in parse(read(f"public/alder-lake.{form}.txt")).metrics
             if one.name == "tma_frontend_bound"]  # fmt: skip
    assert found[0] == ("TopdownL1 (cpu_core)", None, 1.0)
    assert found[1][0] == "TopdownL1 (cpu_atom)"
    assert found[1][1] == pytest.approx(41, abs=0.5)
    assert found[1][2] == 0.63


@pytest.mark.parametrize("form", ["json", "csv"])
def test_thresholds_are_no_part_of_the_name(form):
    metrics = {one.name: one for one in parse(read(f"public/interval-threshold.{form}.txt")).metrics}
    assert {"tma_backend_bound", "tma_bad_speculation"} <= metrics.keys()
    assert metrics["tma_retiring"].value == pytest.approx(33.623465 if form == "json" else 10.2)
    assert metrics["tma_retiring"].place.t_s == pytest.approx(1.001, abs=0.002)


def test_metrics_alone():
    found = parse(read("public/per-core-metric-only.csv.txt")).metrics
    assert [(one.place.where, one.name, one.value) for one in found][1:3] == [
        ("S0-D0-C1", "tma_core_bound", 15.0), ("S0-D0-C2", "tma_core_bound", 16.5)]  # fmt: skip
    assert values(parse(read("synthetic/metric-only.json.txt")))["GHz"] is None
    heads = '{"unit" : "%  tma_retiring"}{"unit" : "GHz"}\n{"metric-value" : "12.5"}{"metric-value" : "3.1"}\n'
    assert values(parse(heads)) == {"tma_retiring": 12.5, "GHz": 3.1}


GARBAGE = [
    "", "# started on Sat Nov 21\n\n", "Segmentation fault", "perf: command not found",
    '{"counter-value" : "12", "event" : "cyc', '{"counter-value" : "12", "unit" : ""}',
    '{"counter-value" : "many", "unit" : "", "event" : "cycles"}', '{"wall" : "green"}', "{}",
    "12,,cycles,abc,100.00,,", "12,,,100,100.00,,", "a,b,c,d,e\n1,2",
]  # fmt: skip


def test_garbage_is_refused_in_a_sentence():
    told = {repr(text): refusal(text) for text in GARBAGE}
    assert all(told.values())
    assert_as_before("perf-garbage", told)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_a_sentence(text):
    assert len(refusal(text).splitlines()) <= 1


@given(st.sampled_from(for_machines()), st.integers(0, 4000))
def test_a_print_that_was_cut_is_read_or_refused(name, length):
    assert len(refusal(read(name)[:length]).splitlines()) <= 1


numbers = st.floats(0, 1e15).map(lambda value: float(f"{value:.2f}"))
names = st.sampled_from(["cycles", "cpu/event=0xd1,umask=0x20/", "LLC-loads:u", "cpu_core/cycles/u"])


@given(
    st.lists(st.tuples(numbers, names, st.integers(1, 10**15), st.integers(1, 100)), min_size=1),
    st.sampled_from(".,"),
    st.sampled_from(",;"),
)
def test_csv_gives_back_what_was_printed(rows, point, separator):
    def told(value):
        return f"{value:.2f}".replace(".", point)

    text = "\n".join(separator.join([told(value), "ms", event, str(runtime), told(share), told(1.5), "GHz"])
                     for value, event, runtime, share in rows)  # fmt: skip
    found = parse_csv(text, separator).lines
    assert [(one.value, one.event, one.runtime_ns, one.running) for one in found] == [
        (value, event, runtime, share / 100) for value, event, runtime, share in rows]  # fmt: skip
