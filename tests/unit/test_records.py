"""Records are read when asked for; what they have in common is held once."""

from castmates.report.block_record import BlockRecord
from castmates.results.records import Records


def test_nothing_is_read_before_somebody_asks(tmp_path):
    read = []

    def one(file):
        read.append(file)
        return {
            "status": "measured",
            "spec": {"number": int(file.name), "company": {"id": "a"}},
            "versions": {"x": "1"},
        }

    files = [tmp_path / str(number) for number in range(3)]
    records = Records(files, one)
    assert len(records) == 3
    assert read == []
    assert [record["spec"]["number"] for record in records] == [0, 1, 2]
    assert records[1]["spec"] == {"number": 1, "company": {"id": "a"}}
    assert records[0]["spec"]["company"] is records[2]["spec"]["company"]
    assert records[0]["versions"] is records[2]["versions"]
    assert read == files
    assert not Records([], one)


def test_odd_values_in_a_record_count_as_missing():
    odd = BlockRecord(
        {
            "seconds": {"total": "x"},
            "rounds": "x",
            "costs": {"perf": 1.0},
            "spec": {"number": "x", "seed": [1], "company": {"protocol": "x", "members": ["x"]}},
        }
    )
    assert (odd.seconds, odd.rounds, odd.number, odd.seed, odd.protocol) == (None, None, 0, None, None)
    assert (odd.costs, odd.members) == ({}, [])
