"""The lab's processor counts at a steady pace whatever it does: that must be found out; the kernel counts rightly."""

from dataclasses import replace

import pytest

from castmates.errors import CastmatesError
from castmates.trials.counters import table
from castmates.trials.counters.program import CORE, SOFTWARE

INVENTED = ("instructions:u", "instructions", "cycles")
TRUE = ("kernel-touch", "crew-touch", "pingpong")


@pytest.mark.machines("linux-6.1")
def test_invented_counts_are_wrong_and_the_kernels_own_are_right(state, tmp_path, compiled):
    wanted = [replace(trial, pairs=3) for trial in (*SOFTWARE, *CORE) if trial.task in TRUE or trial.event in INVENTED]
    record = table.record_of([table.try_one(trial, compiled / "known", tmp_path, perf_stat=False) for trial in wanted])
    events, told = (
        record["events"],
        [(row["event"], row["task"], row["measured"], row["why"]) for row in record["trials"]],
    )
    assert record["platform"] == "emulated"
    assert {events[event] for event in INVENTED} == {"wrong"}, told
    for row in record["trials"]:
        if row["event"] not in INVENTED:
            assert row["verdict"] == "verified" or "disturbed" in row["why"], told
    with pytest.raises(CastmatesError, match="wrong counts: instructions:u, instructions, cycles"):
        table.raise_if_wrong(record)


@pytest.mark.machines("no-rdt")
def test_without_a_pmu_nothing_of_the_processor_is_called_verified(state, tmp_path, compiled):
    record = table.record_of(list(table.try_all(compiled / "known", tmp_path, CORE)))
    assert set(record["events"].values()) == {"not checked"}
    assert all(row["measured"] is None and "not supported" in row["why"] for row in record["trials"])
