"""Perf's metrics in TMA's words; what should add up adds up, on what real processors gave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.counters.topdown.perf_csv import Metric
from castmates.counters.topdown.perf_reading import parse
from castmates.counters.topdown.process import shares, whole_shares
from castmates.study.counter_keys import BY_NAME, TREE, category, children, of_level, remainders
from tests.unit.counters.perf_prints import read, shares_for_people

JSON_L2, CSV = 0.0001, 0.0011  # JSON has six decimals of a per cent; CSV and people get one


def of(name):
    return {one.name: one.value for one in shares(parse(read(name)).metrics) if one.value is not None}


# Where a processor's counters were lent out in turn, each share is of other moments: the sums miss by more.
WHOLE = {
    "public/sapphire-rapids.json.txt": (of, JSON_L2, 5),
    "public/sapphire-rapids.csv.txt": (of, CSV, 5),
    "public/sapphire-rapids.human.txt": (shares_for_people, CSV, 5),
    "public/interval-threshold.json.txt": (of, JSON_L2, 1),
    "public/interval-threshold.csv.txt": (of, CSV, 1),
    "public/trailing-comma.json.txt": (of, JSON_L2, 1),
    "public/alder-lake.json.txt": (of, 0.01, 1),
    "public/skylake-i5-8259u.toplev.txt": (shares_for_people, 0.0005, 5),
    "public/zen4-ryzen-7950x.human.txt": (shares_for_people, 0.0021, 5),
    "public/neoverse-v3ae.human.txt": (shares_for_people, CSV, 1),
    "synthetic/zen4-smt.json.txt": (of, JSON_L2, 5),
    "synthetic/perf-6.1-metrics.json.txt": (of, JSON_L2, 1),
}


@pytest.mark.parametrize("name", WHOLE)
def test_level_one_adds_up_to_one_and_children_to_their_parent(name):
    reading, rounding, families = WHOLE[name]
    missing = remainders(reading(name))
    assert len(missing) == families
    assert {family: round(rest, 5) for family, rest in missing.items() if abs(rest) > rounding} == {}


def test_a_print_that_does_not_add_up_is_seen():
    # 87.9 + 24.0 + 31.5 + 0.0 per cent: a print of a command that ran for less than a millisecond
    assert remainders(of("public/hybrid-user.csv.txt"))[""] == pytest.approx(-0.434)


def test_smt_contention_is_a_fifth_category_of_level_one():
    found = of("synthetic/zen4-smt.json.txt")
    assert found["SMT_Contention"] > 0.1
    assert abs(sum(found[name] for name in of_level(1)) - 1) < JSON_L2


def test_what_perf_could_not_compute_has_no_value():
    found = {one.name: one for one in shares(parse(read("public/alder-lake.json.txt")).metrics[:12])}
    assert (found["Retiring"].value, found["Retiring"].status) == (None, "not counted")


def test_the_kind_of_core_that_was_used_speaks_for_the_member():
    found = {one.name: one for one in shares(parse(read("public/alder-lake.json.txt")).metrics)}
    assert found["Frontend_Bound"].value == pytest.approx(0.41016738)
    assert (found["Frontend_Bound"].status, found["Frontend_Bound"].running) == ("scaled", 0.63)


def test_a_share_is_counted_for_as_little_as_the_least_of_the_events_beside_it():
    # Each metric stands beside one event of 100 or 57 %; cycles, which all are made of, were counted for 42 %.
    found = whole_shares(parse(read("public/hybrid-user.csv.txt")))
    assert {(one.status, one.running) for one in found} == {("scaled", 0.42)}
    assert "42%" in found[0].note
    whole = whole_shares(parse(read("synthetic/zen4-smt.json.txt")))
    assert {one.status for one in whole} == {"counted"}


@pytest.mark.parametrize(
    ("perf", "tma"),
    [
        ("tma_frontend_bound", "Frontend_Bound"),
        ("Frontend_Bound", "Frontend_Bound"),
        ("frontend_bound", "Frontend_Bound"),
        ("Frontend_Bound_SMT", "Frontend_Bound"),
        ("frontend_bound_latency", "Fetch_Latency"),
        ("backend_bound_memory", "Memory_Bound"),
        ("tma_dram_bound", "DRAM_Bound"),
        ("smt_contention", "SMT_Contention"),
        ("tma_backend_bound_aux", None),
        ("insn per cycle", None),
    ],
)
def test_names(perf, tma):
    found = category(perf)
    assert (found.name if found else None) == tma


def test_the_tree_is_one():
    assert len(BY_NAME) == len(TREE)
    aliases = [alias for one in TREE for alias in (one.name.lower(), *one.aliases)]
    assert len(set(aliases)) == len(aliases)
    for one in TREE:
        assert (one.parent == "") == (one.level == 1)
        assert not one.parent or BY_NAME[one.parent].level == one.level - 1


metrics = st.builds(
    Metric,
    name=st.sampled_from([f"tma_{one.name.lower()}" for one in TREE] + ["insn per cycle", "tma_backend_bound_aux"]),
    value=st.none() | st.floats(0, 100),
    unit=st.sampled_from(["%", "percent of slots"]),
    running=st.none() | st.floats(0, 1),
)


@given(st.lists(metrics))
def test_the_normaliser_keeps_each_category_once_and_the_best_told(told):
    found = shares(told)
    assert len({one.name for one in found}) == len(found)
    assert {one.name for one in found} == {category(one.name).name for one in told if category(one.name)}
    for one in found:
        same = [metric for metric in told if category(metric.name) and category(metric.name).name == one.name]
        assert (one.value is None) == all(metric.value is None for metric in same)
        assert (one.value is None) == (one.status == "not counted")
        if one.value is not None:
            assert one.value * 100 in [pytest.approx(metric.value) for metric in same if metric.value is not None]
            best = max(1.0 if metric.running is None else metric.running for metric in same if metric.value is not None)
            assert (1.0 if one.running is None else one.running) == best


shares_of_tree = st.dictionaries(st.sampled_from([one.name for one in TREE]), st.floats(0, 1))


@given(shares_of_tree)
def test_remainders_are_what_is_missing(told):
    for parent, rest in remainders(told).items():
        below = of_level(1) if not parent else children(parent)
        total = sum(told.get(name, 0.0) for name in below)
        assert rest == pytest.approx((told[parent] if parent else 1.0) - total)
