"""A launch under partitions: real processes, the real driver, and a resctrl in memory that answers as a kernel does."""

import json
from pathlib import Path

import pandas as pd
import pytest

from castmates.pipeline.measure_launch import measure_launch
from castmates.rdt.choose import NoMonitor
from castmates.rdt.fake import FakeResctrl, Shape
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.mounting import Mounted
from castmates.runner import launch
from castmates.runner.modelled.hardware import KernelsTasks
from castmates.runner.rounds import hardware, stage
from castmates.runner.rounds import round as rounds
from castmates.runner.rounds.lead_in import LeadIn
from castmates.study.schedule import stretches
from castmates.study.spec import REST, Plan, Scene, Share
from tests.runner.stage import counter, plan_of

pytestmark = pytest.mark.needs("two-cpus")

LEAD, BESIDE = "lead@0", "beside@1"
SPLIT = (Share(member=LEAD, ways=0x001), Share(member=BESIDE, ways=0xFFE), Share(member=REST, ways=0xFFE))


class Driver(ResctrlAllocator):
    """The real one; the members, which this machine's kernel has started, are made known to the one in memory."""

    def __init__(self) -> None:
        self.kernel = FakeResctrl(Shape(domains={0: (0, 1)}))
        self.given: list[int] = []  # how many shares, each time
        entries = ResctrlJournal(None, Path("/nowhere"), "a test")
        super().__init__(Mounted(self.kernel, KernelsTasks(self.kernel), entries, {0: 0, 1: 0}))

    def prepare(self, members):
        for held in members.values():
            self.kernel.processes.fork(pid=held.pid)
        super().prepare(members)

    def apply(self, shares):
        self.given.append(len(shares))
        return super().apply(shares)


def _partitioned(plan: Plan) -> Plan:
    """The plan with its co-run under a split too."""
    (one,) = plan.launches
    corun = next(scene for scene in one.cohort.scenes if scene.kind == "corun")
    split = Scene.model_validate(
        corun.model_dump() | {"name": f"{corun.name}@split-1", "partition": "split-1", "shares": SPLIT}
    )
    cohort = one.cohort.model_copy(update={"scenes": (*one.cohort.scenes, split)})
    return plan.model_copy(update={"launches": (one.model_copy(update={"cohort": cohort}),)})


def _measured(plan: Plan, driver: Driver, cache: Path, folder: Path, monkeypatch) -> tuple[dict, pd.DataFrame]:
    monkeypatch.setattr(launch, "refuse_hopeless", lambda _: None)  # this machine's own resctrl does not matter
    monkeypatch.setattr(hardware, "choose", lambda *_: (driver, NoMonitor()))
    # Whether rates are steady depends on what else runs on this machine.
    monkeypatch.setattr(rounds, "lead_in", lambda *_: LeadIn())
    measure_launch(plan, plan.launches[0].path, folder, cache)
    return json.loads((folder / "launch.json").read_text()), pd.read_parquet(folder / "windows.parquet")


def test_windows_carry_the_masks_that_were_read_back(cache, tmp_path, monkeypatch):
    plan = _partitioned(plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache))
    driver = Driver()
    record, windows = _measured(plan, driver, cache, tmp_path, monkeypatch)
    assert record["status"] == "measured"
    assert not windows["reasons"].str.contains("mask|group").any(), windows[["scene", "reasons"]]
    under = windows[windows["partition"] == "split-1"]
    assert dict(zip(under["member"], under["ways"], strict=True)) == {LEAD: 1, BESIDE: 11}
    assert under["schemata"].str.contains("MB:0=100").all()
    assert (windows[windows["partition"] == "unmanaged"]["ways"] == 12).all()
    assert driver.kernel.names("") == FakeResctrl(driver.kernel.shape).names("")  # the groups are gone
    assert "fff" in driver.kernel.read("schemata")
    # Where the size of the cache is known, it is emptied before every stretch, with a partition and without one.
    empties = bool(stage.evictors(hardware.read_topology(), plan.launches[0].cohort, (0,)))
    rounds = sorted(windows["round"].unique())  # spare ones too, where others are busy
    parts = [bool(part.shares) for number in rounds for part in stretches(plan.launches[0], number)]
    assert driver.given.count(3) == sum(parts)
    assert record["eviction"].get("times", 0) == empties * len(parts)
    assert any(name.startswith("evictor:") for name in record["members"]) == empties
    assert ("before every stretch: CPU" in record["hardware"]["eviction"]["eviction"]) == empties
