"""A member that queues work on a device is frozen between two steps, when nothing is queued."""

from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.runner.cleanup.warden import guarded
from castmates.runner.processes import freezer
from castmates.study.model import Workload
from castmates.trials.workloads.check import Places, check_one, starter
from castmates.trials.workloads.promises import launched
from castmates.workloads.standing import Standing, StandingError
from tests.runner.stage import PYTHON
from tests.waiting import wait_for

PLACES = Places(Path("envs"), cache_folder())
JOB = """
import sys, time
from castmates.workloads.heartbeat import Writer
from castmates.workloads.standing import Standing
beat, standing = Writer.from_environment(), Standing.from_environment()
queued = open(sys.argv[1], "r+b", buffering=0)
def is_queued(number):
    queued.seek(0); queued.write(bytes([number]))
beat.ready()
while True:
    {stand}
    is_queued(1)
    begin = time.monotonic()
    while time.monotonic() < begin + 0.01: pass
    is_queued(0)
    beat.beat()
"""


def workload(queued: Path, stand: str) -> Workload:
    command = [PYTHON, "-c", JOB.format(stand=stand), str(queued)]
    keys = {"command": command, "progress": "heartbeat", "unit": "step", "frozen_between_steps": True}
    return Workload.model_validate(keys)


@pytest.fixture
def queued(tmp_path):
    file = tmp_path / "queued"
    file.write_bytes(b"\0")
    return file


def test_whenever_it_is_frozen_nothing_is_queued(queued, compiler):
    with (
        guarded() as warden,
        launched(starter("job", workload(queued, "standing.stand()"), PLACES, (0,)), (0,), warden) as alone,
    ):
        alone.become_ready()
        stage, (job,) = alone._stage, alone._stage.cast.values()
        assert (queued.read_bytes(), job.reader.head) == (b"\0", 0), "it stood before its first step"
        for turn in range(20):
            head = job.reader.head
            (stage.switch if turn % 2 else stage.exchange)([job.name])
            wait_for(lambda head=head: job.reader.head > head, "it makes a step")
            (stage.exchange if turn % 2 else stage.switch)([])
            assert queued.read_bytes() == b"\0"
            wait_for(lambda: stage.freezer.is_frozen(job.name), "it is frozen")  # `exchange` does not wait for that
        assert job.between_steps.about()["times"] == 21  # the first time when it was ready
        stage.switch([job.name])  # who is stopped by signals ends once it goes on
        assert alone.end().seconds is not None


def test_it_keeps_the_promises_of_other_workloads(queued, compiler):
    with guarded() as warden:
        assert check_one("job", workload(queued, "standing.stand()"), PLACES, 0.2, warden).why == ""


def test_one_that_does_not_stand_is_not_frozen_with_work_queued(queued, compiler, monkeypatch):
    monkeypatch.setattr(freezer.let_stand, "__defaults__", (0.3,))
    said = r"member job@0 did not come to the end of a step within 0\.3 s"
    start = starter("job", workload(queued, "pass"), PLACES, (0,))
    with guarded() as warden, launched(start, (0,), warden) as alone, pytest.raises(CastmatesError, match=said):
        alone.become_ready()


def test_each_asking_is_answered_anew(tmp_path):
    runner = Standing.create(tmp_path / "file")
    job = Standing(tmp_path / "file")
    looks = iter([False, False, True])
    job.stand(leaving=lambda: next(looks))
    assert runner.stands()
    runner.let_go()
    assert not runner.stands()
    job.stand()  # not asked: it returns at once
    runner.ask()
    assert not runner.stands(), "an older answer does not count"
    Standing(None).stand()


def test_another_file_is_left_untouched(tmp_path):
    for content in (b"", b"x" * 64, b"CASTSTND" + b"\2" * 56):
        file = tmp_path / "other"
        file.write_bytes(content)
        with pytest.raises(StandingError, match="is not a file of this version"):
            Standing(file)
        assert file.read_bytes() == content
