"""What a keeper writes down of the time between two runs, and what a window makes of it."""

import struct
from collections.abc import Callable

import pytest

from castmates.protocols import Sample
from castmates.runner.processes import restarts
from castmates.runner.processes.restarts import Restarts
from tests.unit.windows_maker import member


@pytest.fixture
def written(tmp_path) -> tuple[Restarts, Callable[..., None]]:
    """A file of restarts, and a hand that writes a keeper's records into it."""
    path = tmp_path / "restarts"
    found = Restarts.create(path)

    def write(*gaps: tuple[int, int], at: int = 0) -> None:
        with path.open("r+b") as file:
            for number, gap in enumerate(gaps, start=at):
                file.seek(64 + 16 * (number % restarts.CAPACITY))
                file.write(struct.pack("QQ", *gap))
            file.seek(24)
            file.write(struct.pack("Q", at + len(gaps)))

    return found, write


def test_a_gap_that_is_not_over_is_counted_up_to_the_close_and_read_again(written):
    found, write = written
    write((100, 110), (200, 0))
    found.read()
    assert found.inside(105, 230) == [(105, 110), (200, 230)]
    assert found.begun(105, 230) == [(100, 110)]
    found.forget()
    assert found.inside(230, 240) == [(230, 240)]
    write((200, 250), (300, 310), at=1)
    found.read()
    assert found.inside(240, 400) == [(240, 250), (300, 310)]
    found.forget()
    assert found.inside(0, 400) == [(300, 310)][:0]


def test_restarts_that_came_too_fast_to_be_read_are_no_small_gap(written):
    found, write = written
    write(*[(10 * n, 10 * n + 1) for n in range(1, restarts.CAPACITY + 100)])
    found.read()
    read = restarts.samples({"b@1": found}, 0, 10**9)
    assert {one.metric: one.value for one in read[:3]} == dict.fromkeys(
        ("restarts", "restart_gap_s", "longest_restart_gap_s")
    )
    assert "100 restarts were overwritten" in read[0].note
    (reason,) = restarts.reasons(read, 1.0, {"b@1": member("b@1")}, 1.0)
    assert str(reason).startswith("restart gap: b@1 was restarted so often")


def test_samples_sum_up_the_gaps_and_mark_where_each_run_begins(written):
    found, write = written
    second = 10**9
    write((second, 2 * second), (4 * second, 7 * second))
    found.read()
    read = restarts.samples({"a@0": None, "b@1": found}, 0, 10 * second)
    assert {(one.source, one.subject) for one in read} == {("keeper", "b@1")}
    assert [(one.t_ns, one.metric, one.value) for one in read] == [
        (10 * second, "restarts", 2),
        (10 * second, "restart_gap_s", 4),
        (10 * second, "longest_restart_gap_s", 3),
        (2 * second, "run_begins_after_s", 1),
        (7 * second, "run_begins_after_s", 3),
    ]


@pytest.mark.parametrize(
    ("name", "role", "absent", "expected"),
    [
        ("b@1", "antagonist", 0.0999, []),
        ("b@1", "antagonist", 0.1001, ["5.0%"]),
        ("b@1", "antagonist", 1.0, ["50.0%"]),
        ("b@1", "lead", 1.0, []),
    ],
)
def test_an_antagonist_may_be_absent_for_its_share_of_a_window(name, role, absent, expected):
    read = [Sample(0, "keeper", name, "restart_gap_s", absent), Sample(0, "other", name, "restart_gap_s", 2.0)]
    found = restarts.reasons(read, 2.0, {name: member(name, role)}, 0.05)
    assert [str(reason).partition(" (limit 5.0%")[0] for reason in found] == [
        f"restart gap: b@1 was absent for {share}" for share in expected
    ]
