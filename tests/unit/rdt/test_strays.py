"""Threads outside of their groups: how many there are, and those that ended while they were looked for."""

import re

import pytest

from tests.unit.rdt.fakes import Bench

OTHER = "other@1"


def moved_out(bench: Bench, number: int) -> list[int]:
    """Move the last threads of a member into the default group."""
    some = bench.tasks.threads([bench.held[OTHER]])[bench.held[OTHER].pid][-number:]
    for tid in some:
        bench.fake.write("tasks", f"{tid}\n")
    return some


@pytest.mark.parametrize("shows_places", [True, False])
@pytest.mark.parametrize("number", [2, 5, 6])
def test_strays_are_counted_and_the_first_five_are_named(shows_places, number):
    bench = Bench(shows_places=shows_places)
    allocator = bench.prepared()
    some = moved_out(bench, number)
    (sentence,) = allocator.misplaced()
    assert f"other@1 has {number} threads outside of its group" in sentence
    assert [int(tid) for tid in re.findall(r"(\d+) \(in ", sentence)] == some[:5]
    assert sentence.endswith(" …") == (number > 5)


def test_a_thread_that_ends_while_it_is_looked_for_is_in_no_wrong_group(monkeypatch):
    """Where only the groups' lists are there, a thread that has just ended is in none of them."""
    bench = Bench(shows_places=False)
    allocator = bench.prepared()
    other = bench.held[OTHER]
    *_, last = bench.tasks.threads([other])[other.pid]
    listed = bench.tasks.threads

    def threads(held):
        found = listed(held)
        if last in listed([other])[other.pid]:
            bench.fake.processes.exit(last)
        return found

    monkeypatch.setattr(bench.tasks, "threads", threads)
    assert allocator.misplaced() == []


def test_only_threads_that_the_groups_list_lacks_are_asked_where_they_are(monkeypatch):
    bench, asked = Bench(), []
    allocator = bench.prepared()
    some, place = moved_out(bench, 2), bench.tasks.place
    monkeypatch.setattr(bench.tasks, "place", lambda tid: asked.append(tid) or place(tid))
    assert "has 2 threads outside" in allocator.misplaced()[0]
    assert asked == some
