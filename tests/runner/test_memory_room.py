"""A launch in a control group that allows too little memory, for real: it is refused before anybody is started."""

import os
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.owner import group_name
from castmates.machine.probes import free_memory, limited_memory
from castmates.pipeline.measure_launch import measure_launch
from tests.needs import lacks
from tests.runner.stage import counter, plan_of

LIMIT = 300 << 20
LIMITS = {"cgroup2": "memory.max", "cgroup": "memory.limit_in_bytes"}


def places():
    """Where groups with a limit might be made, and the file of the limit."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        if kind in LIMITS and (kind == "cgroup2" or "memory" in options.split(",")):
            yield Path(before.split()[4]), LIMITS[kind]


@pytest.fixture
def limited():
    """A group that allows little; the functions that it is given run in a child process inside it."""
    for place, file in places():
        group = place / group_name("memory")
        try:
            group.mkdir()
            (group / file).write_text(str(LIMIT))
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        break
    else:
        lacks("cgroup", "no control group here in which this user may limit memory")

    def inside(do):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                cgroups.move(group, os.getpid())
                said = str(do())
            except CastmatesError as problem:
                said = f"refused: {problem}"
            except BaseException as problem:
                said = repr(problem)
            os.write(writing, said.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answers:
            said = answers.read()
        os.waitpid(child, 0)
        return said

    yield inside
    group.rmdir()


def test_the_limit_of_a_group_is_what_may_be_used_in_it(limited):
    assert limited(limited_memory) == str(LIMIT)
    assert 0 < int(limited(free_memory)) <= LIMIT


@pytest.mark.needs("two-cpus", "compiler")
def test_a_launch_that_takes_more_is_refused_before_anybody_is_started(limited, cache, tmp_path):
    plan = plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache, rounds=1)
    plan = plan.model_copy(update={"memory": {"lead": 200 << 20, "beside": 200 << 20}})
    said = limited(lambda: measure_launch(plan, plan.launches[0].path, tmp_path, cache))
    assert said.startswith("refused: this launch takes about 0.4 GB of memory (lead 0.2 + beside 0.2), and only ")
    assert "of the 0.3 GB that its control group allows are free now" in said
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []
