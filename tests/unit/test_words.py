"""What the report claims in words."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.analysis.effects.verdicts import TOO_FEW
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import MachineFacts
from castmates.report.text import health, machine, words
from castmates.results.columns.launch import WINDOWS
from castmates.results.columns.study import LAUNCHES, frame
from tests.unit.snapshots import assert_as_before

NAN = math.nan


@given(st.floats(-1e6, 1e6))
def test_numbers_have_a_real_minus_and_no_negative_zero(value):
    text = words.number(value)
    assert "-" not in text
    assert text != "−0.0"
    assert float(text.replace("−", "-")) == pytest.approx(value, abs=0.0501)


def test_what_is_no_number_is_a_dash():
    assert words.number(NAN) == "–"


def launches(*rows):
    usual = {"status": "measured", "reason": "", "launch": 1, "windows": 10, "windows_rejected": 0, "rounds": 3}
    return frame([usual | row for row in rows], LAUNCHES)


def rejected(*kinds):
    numbers = dict.fromkeys((name for name, kind in WINDOWS.items() if kind in ("int64", "float64")), 0)
    rows = [
        numbers | {"cohort": "c", "window": n, "valid": False, "reason_kinds": cell} for n, cell in enumerate(kinds)
    ]
    return frame(rows, WINDOWS)


def test_sentences_of_rejections_and_failures():
    windows = rejected("too few steps", "too few steps; steal")
    failed = {"status": "failed", "reason": "stream@1 was never ready."}
    many = [{"status": "failed", "reason": f"reason {letter}"} for letter in "abcde"]
    unclean = {"rounds": 0}
    failures = {
        "two of three": [failed, failed, {}],
        "one of one": [failed],
        "no reason": [{"status": "failed"}],
        "none": [{}, {}],
        "nothing": [],
        "five reasons": many,
        "failed and unclean": [failed | unclean, unclean, unclean, {}],
        "unclean": [unclean, {}],
        "one failed": [failed, {}],
    }
    assert_as_before(
        "failures",
        {name: words.failure_sentence(launches(*rows)) for name, rows in failures.items()}
        | {
            "rejections": words.rejection_sentence(launches({"windows_rejected": 2}), windows),
            "no rejection": words.rejection_sentence(launches({}), rejected()),
            "no launches": words.rejection_sentence(launches(), rejected()),
        },
    )


def test_what_is_not_measured_is_never_called_measured():
    assert "not a measurement" in words.platform_words(["emulated"])
    assert "not a measurement" in words.platform_words(["modelled"])
    assert words.platform_words(["measured"]).startswith("Measured")
    assert words.platform_words([]) == words.NO_PLATFORM


def test_loss_is_that_of_the_design():
    assert words.as_loss(2.0) == 50.0
    few = pd.Series({"verdict": TOO_FEW, "loss_pct": 40.0, "within_low": 1.25, "within_high": 2.0})
    assert str(words.loss_seen(few, "%")) == "40.0 % [20.0, 50.0]"


def test_machine_facts_may_be_missing_or_none():
    assert described() == []
    assert "were not recorded" in lacks()[0]
    none = dict.fromkeys(
        ("topology", "turbo", "governors", "resctrl", "perf", "virtualisation", "memory_bytes", "steal_share")
    )
    assert described(**none) == []
    assert any("No cache partitions" in said for said in lacks(**none))


def described(**facts):
    return machine.described(MachineFacts.model_validate(facts))


def lacks(**facts):
    return machine.lacks(MachineFacts.model_validate(facts))


def origins(records, **facts):
    return machine.origins([LaunchRecord(record) for record in records], MachineFacts.model_validate(facts))


def records(*origins):
    return [{"status": "measured", "host": host, "versions": {"kernel": kernel}} for host, kernel in origins]


def test_launches_that_ran_elsewhere_or_with_other_versions_are_told():
    def record(*versions):
        members = {f"xz@{cpu}": {"package": {"xz-utils": version}} for cpu, version in enumerate(versions)}
        return {"status": "measured", "members": members | {"chase@9": {"package": None}}}

    facts, same = {"hostname": "a", "kernel": "6.1"}, [record("5.4.1"), record("5.4.1", "5.4.1")]
    assert_as_before(
        "origins",
        {
            "two versions of a program": origins([*same, record("5.6.0")]),
            "two hosts, one of them here": origins(records(*[("a", "6.1")] * 3, *[("b", "6.1")] * 2), **facts),
            "two kernels": origins(records(("a", "6.1"), ("a", "6.2")), **facts),
            "two other hosts": origins(records(("b", "6.1"), ("c", "6.1")), **facts),
            "two hosts, and no facts": origins(records(("b", "6.1"), ("c", "6.1"))),
            "another host and kernel": origins(records(("b", "6.2")), **facts),
        },
    )
    failed = {"status": "failed", "host": "b"}
    for agreed in (same, records(("a", "6.1"), ("a", "6.1")), [{"status": "measured"}, {}]):
        assert origins([*agreed, failed], **facts) == []
    assert origins(records(("a", "6.1"))) == []


def test_a_machine_that_has_everything_lacks_nothing():
    facts = {
        "resctrl": {"mounted": "/x", "writable": True},
        "perf": {"hardware": "counted"},
        "governors": {"performance": "0-3"},
    }
    assert lacks(**facts) == []
    assert lacks(**(facts | {"perf": {"hardware": "<not supported>"}})) == [
        "No hardware counters (<not supported>): losses are measured but their causes in the processor are not "
        "explained."
    ]


def test_a_fact_of_another_kind_counts_as_missing():
    odd = {"topology": "8 CPUs", "memory_bytes": "much", "turbo": [], "hostname": "a", "cpu_model": {"name": "x"}}
    assert described(**odd) == [("Host", "a")]


@pytest.mark.parametrize(
    ("count", "text"), [(512, "512 B"), (2**25, "32 MiB"), (int(37.5 * 2**20), "37.5 MiB"), (2**45, "32 TiB")]
)
def test_sizes_are_in_binary_units(count, text):
    assert machine.size(count) == text


def test_the_real_machine_can_be_described():
    from castmates.machine.facts import machine_facts

    facts = machine_facts()
    assert dict(described(**facts))["Kernel"] == facts["kernel"]
    assert all(sentence.endswith(".") for sentence in lacks(**facts))


def test_known_quirks_are_kept_in_words_that_need_no_table():
    kept = [{"title": "a quirk (errata X1)", "happens": "It fails.", "do": "Wait.", "sources": ["https://x.y/z"]}, {}]
    facts = MachineFacts.model_validate({"quirks": kept})
    assert [quirk.title for quirk in machine.quirks(facts)] == ["a quirk (errata X1)"]
    assert machine.quirks(MachineFacts.model_validate({"quirks": "none"})) == []


def test_readings_that_are_missing_are_counted_by_launch():
    good = LaunchRecord({"hardware": {"monitor": {"monitoring": "resctrl", "rate": "10 Hz"}}})
    poor = LaunchRecord({"hardware": {"monitor": {"looks without a value": "mbm_total: Unavailable (3)"}}})
    assert health.readings_sentence([good, good]) == ""
    assert health.readings_sentence([good, poor]) == (
        "1 of 2 launches lack some, for example: mbm_total: Unavailable (3)."
    )
    assert health.readings_sentence([LaunchRecord({})]) == ""
