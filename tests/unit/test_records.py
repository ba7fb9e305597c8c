"""Records are read when asked for; what they have in common is held once."""

import json

import pytest

from castmates.errors import CastmatesError
from castmates.pipeline.measure_launch import refuse_busy_machine
from castmates.report.launch_record import LaunchRecord
from castmates.results.folder import StudyFolder
from castmates.results.records import Records


def test_nothing_is_read_before_somebody_asks(tmp_path):
    read = []

    def one(file):
        read.append(file)
        return {"status": "measured", "spec": {"number": int(file.name), "cohort": {"id": "a"}}, "versions": {"x": "1"}}

    files = [tmp_path / str(number) for number in range(3)]
    records = Records(files, one)
    assert len(records) == 3
    assert read == []
    assert [record["spec"]["number"] for record in records] == [0, 1, 2]
    assert records[1]["spec"] == {"number": 1, "cohort": {"id": "a"}}
    assert records[0]["spec"]["cohort"] is records[2]["spec"]["cohort"]
    assert records[0]["versions"] is records[2]["versions"]
    assert read == files
    assert not Records([], one)


def test_odd_values_in_a_record_count_as_missing():
    odd = LaunchRecord(
        {
            "seconds": {"total": "x"},
            "rounds": "x",
            "costs": {"perf": 1.0},
            "spec": {"number": "x", "seed": [1], "cohort": {"protocol": "x", "members": ["x"]}},
        }
    )
    assert (odd.seconds, odd.rounds, odd.number, odd.seed, odd.protocol) == (None, None, 0, None, None)
    assert (odd.costs, odd.members) == ({}, [])


BUSY = {"foreign load": {"alone": 40, "corun": 20}, "too few steps": {"alone": 1}}


@pytest.mark.parametrize(
    ("rounds", "because", "refused"),
    [
        ((0, 0), BUSY, True),
        ((0, 3), BUSY, False),
        ((0, 0), {"foreign load": {"alone": 1}, "too few steps": {"alone": 9}}, False),  # its own fault
        ((0,), BUSY, False),
        ((0, 0, 0), BUSY, False),  # the user has been told, and went on
    ],
)
def test_nothing_more_is_measured_where_others_spoilt_all_of_the_first_launches(tmp_path, rounds, because, refused):
    for number, clean in enumerate(rounds):
        place = tmp_path / f"launches/lead-1/{number}"
        place.mkdir(parents=True)
        record = {"status": "measured", "rounds": clean, "ledger": {"slices_because": because}}
        (place / "launch.json").write_text(json.dumps(record))
    if refused:
        with pytest.raises(CastmatesError, match="too busy"):
            refuse_busy_machine(StudyFolder(tmp_path))
    else:
        refuse_busy_machine(StudyFolder(tmp_path))
