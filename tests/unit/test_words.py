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


def test_rejections_are_counted_and_like_reasons_put_together():
    windows = rejected("too few steps", "too few steps; steal")
    said = words.rejection_sentence(launches({"windows_rejected": 2}), windows)
    assert said == "2 of 10 windows (20.0 %) were rejected, most often for too few steps (2) and steal (1)."
    assert words.rejection_sentence(launches({}), rejected()) == "None of the 10 windows was rejected."
    assert words.rejection_sentence(launches(), rejected()) == "Nothing was measured."


def test_failures_are_counted_with_their_reasons():
    failed = {"status": "failed", "reason": "stream@1 was never ready."}
    assert words.failure_sentence(launches(failed, failed, {})) == (
        "2 of 3 launches failed: stream@1 was never ready. `castmates sweep --retry` measures them again."
    )
    assert words.failure_sentence(launches(failed)) == (
        "1 of 1 launch failed: stream@1 was never ready. `castmates sweep --retry` measures it again."
    )
    assert "failed: no reason was given. `" in words.failure_sentence(launches({"status": "failed"}))
    assert words.failure_sentence(launches({}, {})) == "All 2 launches were measured."
    assert words.failure_sentence(launches()) == "There are no launches."
    many = [{"status": "failed", "reason": f"reason {letter}"} for letter in "abcde"]
    assert words.failure_sentence(launches(*many)).count("; and 2 further reasons, in the table of launches. `") == 1


def test_launches_without_a_clean_round_are_told_with_the_failures():
    failed, unclean = {"status": "failed", "reason": "it ended.", "rounds": 0}, {"rounds": 0}
    said = words.failure_sentence(launches(failed, unclean, unclean, {}))
    assert said.startswith("1 of 4 launches failed: it ended. `castmates sweep --retry` measures it again.")
    assert said.endswith(
        " 2 launches have a rejected window in every round; `castmates sweep --retry` measures them again too."
    )
    assert words.failure_sentence(launches(unclean, {})) == (
        "All 2 launches were measured. 1 launch has a rejected window in every round. "
        "`castmates sweep --retry` measures it again."
    )
    for fine in (launches(failed, {}), launches({}, {})):
        assert "without a rejected window" not in words.failure_sentence(fine)


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


def test_launches_that_ran_several_versions_of_a_program_are_told():
    def record(*versions):
        members = {f"xz@{cpu}": {"package": {"xz-utils": version}} for cpu, version in enumerate(versions)}
        return {"status": "measured", "members": members | {"chase@9": {"package": None}}}

    assert origins([record("5.4.1"), record("5.4.1", "5.4.1")]) == []
    assert origins([record("5.4.1"), record("5.4.1", "5.4.1"), record("5.6.0")]) == [
        "The launches ran 2 versions of xz-utils (5.4.1: 2, 5.6.0: 1); their effects are pooled."
    ]


def test_launches_of_several_hosts_or_kernels_are_told():
    facts = {"hostname": "a", "kernel": "6.1"}
    assert origins(records(*[("a", "6.1")] * 3, *[("b", "6.1")] * 2), **facts) == [
        "The launches come from 2 hosts (a: 3, b: 2); their effects are pooled, "
        "and the machine below is only one of them."
    ]
    (said,) = origins(records(("a", "6.1"), ("a", "6.2")), **facts)
    assert said.startswith(
        "The launches come from 2 kernels (6.1: 1, 6.2: 1); their effects are pooled, and the kernel"
    )
    assert origins(records(("b", "6.1"), ("c", "6.1")), **facts)[0].endswith("below is none of them.")
    assert origins(records(("b", "6.1"), ("c", "6.1")))[0].endswith("are pooled.")


def test_launches_of_another_host_or_kernel_than_the_described_one_are_told():
    assert origins(records(("b", "6.2")), hostname="a", kernel="6.1") == [
        "The launches come from the host b, which is not the machine below (a).",
        "The launches come from the kernel 6.2, which is not the kernel below (6.1).",
    ]


def test_nothing_is_told_of_origins_that_agree_are_unknown_or_gave_no_number():
    facts = {"hostname": "a", "kernel": "6.1"}
    assert origins(records(("a", "6.1"), ("a", "6.1")), **facts) == []
    assert origins(records(("a", "6.1"))) == []
    assert origins([{"status": "measured"}, {}], **facts) == []
    assert origins([*records(("a", "6.1")), {"status": "failed", "host": "b"}], **facts) == []


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
