"""A real launch whose prefetchers are a factor; the registers are files, because no test may touch a machine's own."""

import struct
from functools import partial

import pytest

from castmates.errors import CastmatesError
from castmates.machine.knobs import PREFETCH_CONTROL
from castmates.runner.processes import isolation
from castmates.runner.rounds.witnesses import PREFETCHERS_CHANGED, WERE_OFF
from castmates.study.mitigations import PREFETCHERS_OFF, without_prefetching
from tests.runner.stage import counter, measured, plan_of, tables, under

pytestmark = pytest.mark.needs("two-cpus", "compiler")


@pytest.fixture
def plan(cache):
    """A co-run that is also measured with prefetchers off."""
    made = plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache)
    return under(made, without_prefetching(made.cohorts[0].members))


def build(root, plan):
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n")
    files = []
    for member in plan.launches[0].cohort.members:
        for cpu in member.cpus:
            files.append(root / f"dev/cpu/{cpu}/msr")
            files[-1].parent.mkdir(parents=True)
            files[-1].write_bytes(bytes(PREFETCH_CONTROL) + struct.pack("<Q", 0))
    return files


def test_each_window_has_its_prefetchers_proved_and_they_are_put_back(cache, tmp_path, monkeypatch, plan):
    (root := tmp_path / "root").mkdir()
    (out := tmp_path / "out").mkdir()
    registers = build(root, plan)
    before = [file.read_bytes() for file in registers]
    monkeypatch.setattr(isolation, "switched", partial(isolation.switched, root=root))
    record = measured(plan, out, cache)
    windows, samples = tables(out, "windows", "samples")
    assert record["status"] == "measured"
    assert not windows["reasons"].str.contains("prefetchers").any(), windows[["scene", "reasons"]]
    assert record["hardware"]["prefetchers"]
    seen = samples[samples["metric"] == WERE_OFF].merge(windows[["window", "partition"]].drop_duplicates(), on="window")
    assert set(zip(seen["partition"], seen["value"], strict=True)) == {("unmanaged", 0.0), (PREFETCHERS_OFF, 1.0)}
    assert PREFETCHERS_CHANGED not in set(samples["metric"])
    assert [file.read_bytes() for file in registers] == before


def test_nothing_is_launched_where_registers_cannot_be_switched(cache, tmp_path, monkeypatch, plan):
    (root := tmp_path / "root").mkdir()
    build(root, plan)[0].unlink()
    monkeypatch.setattr(isolation, "switched", partial(isolation.switched, root=root))
    monkeypatch.setattr("castmates.runner.staging.launch", None)
    with pytest.raises(CastmatesError, match=r"prefetchers cannot be read: .*modprobe msr.*'cache.prefetchers'"):
        measured(plan, tmp_path, cache)
