"""What a comparison says of memory traffic that is not the same quantity on both sides."""

import pytest

from castmates.report.comparison.details import SetUp, other_traffic
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import MachineFacts

INTEL, AMD, ARM = {"vendor": "GenuineIntel"}, {"vendor": "AuthenticAMD"}, {"implementer": "0x41"}
BOTH = "llc_occupancy, mbm_local_bytes, mbm_total_bytes"


def side(processor, events=BOTH, kinds=""):
    monitor = {"events": events} | ({"traffic counts": kinds} if kinds else {})
    records = [LaunchRecord({"hardware": {"monitor": monitor}}), LaunchRecord({})]
    return SetUp(MachineFacts.model_validate({"processor": processor}), records)


def test_vendors_count_different_things():
    (said,) = other_traffic(side(INTEL), side(AMD), "C")
    assert said.startswith(
        "Memory traffic (MBM) was counted by an Intel processor in A and by an AMD one in C, so totals"
    )
    assert "an Intel processor counts what its last-level cache exchanges with memory" in said
    assert "BMEC bits" in said
    assert "non-temporal writes" in said
    assert "by an Arm processor in A and by an Intel one in B" in next(other_traffic(side(ARM), side(INTEL), "B"))


def test_one_vendor_may_be_set_to_count_different_things():
    seven, one = "mbm_total_bytes 0x7f", "mbm_total_bytes 0x1"
    (said,) = other_traffic(side(AMD, kinds=seven), side(AMD, kinds=one), "B")
    assert f"in A ({seven}) than in B ({one})" in said
    (said,) = other_traffic(side(AMD, kinds=seven), side(AMD), "B")
    assert "in B (as the hardware is set by default)" in said


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (side(INTEL), side(INTEL)),
        (side(AMD, kinds="mbm_total_bytes 0x7f"), side(AMD, kinds="mbm_total_bytes 0x7f")),
        (side(INTEL, events="llc_occupancy"), side(AMD)),  # nothing that could be compared
        (side({}), side(AMD)),  # the processor is not known
    ],
)
def test_nothing_is_said_where_it_is_the_same_or_not_known(a, b):
    assert list(other_traffic(a, b, "B")) == []
