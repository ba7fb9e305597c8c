"""What was seen of a workload becomes a promise that is kept or broken, by rules that stand beforehand."""

import io

import pytest
from rich.console import Console

from castmates.runner.rounds.stage import LEAVE
from castmates.study.model import Workload
from castmates.trials.workloads import check, promises
from castmates.trials.workloads.check import Result
from castmates.trials.workloads.promises import Ended, Seen, Stood, Usage
from castmates.trials.workloads.tables import results_table, rows
from castmates.workloads import inputs
from tests.unit.snapshots import assert_as_before


def usage(busy: int = 1, idle: int = 0, memory: int = 10**6, cpus: tuple[int, ...] = (1,)) -> Usage:
    one = Usage(threads=busy + idle, memory=memory, cpus=set(cpus))
    one._first = dict.fromkeys(range(busy + idle), 0.0)
    one._last = {thread: float(thread < busy) for thread in range(busy + idle)}
    one._alive = [frozenset(range(busy + idle))]
    return one


def seen(beats: int = 11, units: int = 100, units_s: float = 2.0, cpu_s: float = 2.0, **used: object) -> Seen:
    return Seen(2.0, beats, units, units_s, cpu_s, usage(**used))


def workload(**keys: object) -> Workload:
    return Workload.model_validate({"command": "x", "progress": "heartbeat", "unit": "step", "memory": "1 GB", **keys})


NO_RUN = {"beats": 0, "units": 0}
BROKEN = [
    promises.progress(seen(beats=1, units=0), workload()), promises.progress(seen(units=0), workload()),
    promises.progress(seen(units_s=0.0), workload()),
    promises.progress(seen(cpu_s=0.1, **NO_RUN), workload(progress="runs")),
    promises.progress(seen(**NO_RUN), workload(unit="run")), promises.freezes(Stood(False, 0, 0.0, True)),
    promises.freezes(Stood(True, 1, 0.0, True)), promises.freezes(Stood(True, 0, 0.2, True)),
    promises.freezes(Stood(True, 0, 0.0, False)), promises.pinned(seen(cpus=(0, 1, 2)), (1,)),
    promises.threads(seen(busy=5), workload()), promises.memory(seen(memory=1_200_000_000), workload()),
    promises.ends(Ended(None, False, "")), promises.ends(Ended(0.1, True, "sum differs")),
    promises.progress(seen(units=9000), workload(progress={"calls": "x:step"}, unit="call", cores=2)),
]  # fmt: skip
KEPT = [
    promises.ready(0.25), promises.progress(seen(), workload()),
    promises.progress(seen(**NO_RUN), workload(progress="runs")),
    promises.freezes(Stood(True, 0, 0.0, True)), promises.pinned(seen(), (1,)),
    promises.threads(seen(busy=4, idle=50), workload()), promises.memory(seen(memory=1_090_000_000), workload()),
    promises.memory(seen(memory=12 << 20), workload(memory="1 MB")), promises.ends(Ended(1.5, False, "")),
    promises.progress(seen(units=9000), workload(progress={"calls": "x:step"}, unit="call", cores=3)),
]  # fmt: skip


def test_a_broken_promise_is_a_sentence_and_a_kept_one_shows_what_was_seen():
    assert not any(found.kept for found in BROKEN)
    assert all(found.kept for found in KEPT)
    found = {
        f"{number} {one.promise}": one.seen if one.kept else one.broken for number, one in enumerate([*BROKEN, *KEPT])
    }
    assert_as_before("promises", found)


def spent(seconds: list[float], together: int) -> Usage:
    """Threads that had so much CPU time; so many of them lived at a time, beside one that waits for them."""
    threads = dict(enumerate(seconds))
    looks = [frozenset({-1, *list(threads)[first : first + together]}) for first in range(0, len(threads), together)]
    return Usage(_first=dict.fromkeys(threads, 0.0) | {-1: 0.0}, _last=threads | {-1: 0.0}, _alive=looks)


@pytest.mark.parametrize(
    ("usage", "busy"),
    [
        (spent([0.3] * 10, together=1), 1),  # short runs, one after the other
        (spent([0.12] * 24, together=24), 24),  # each has 4 % of the work
        (spent([2.0, *[0.1] * 20], together=21), 1),  # many that do a little
        (spent([0.01] * 30, together=30), 0),  # a tick may be by chance
        (Usage(), 0),
    ],
)
def test_threads_are_busy_beside_those_that_live_at_the_same_time(usage, busy):
    assert usage.busy() == busy


def test_what_fails_after_the_last_promise_fails_at_restarting():
    known = [promises.Finding(name, "yes") for name in promises.NAMES]
    assert check._broken_off(known, "it could not be killed").promise == "restarts"
    assert check._broken_off(known[:1], "it died").promise == "progress"


def printed(shown: object) -> str:
    stream = io.StringIO()
    Console(file=stream, width=160).print(shown)
    return stream.getvalue()


def test_the_table_shows_every_promise_and_tells_what_is_wrong():
    broken = promises.ends(Ended(None, False, ""))
    results = [
        Result("good", "kept", "", (promises.ready(0.1),)),
        Result("bad", "broken", broken.broken, (broken,)),
        Result("far", "not here", "there is no program 'x'; apt-get install x"),
    ]
    text = printed(results_table(results))
    for name in promises.NAMES:
        assert name in text
    assert f"bad: it had not ended {LEAVE:g} s after SIGTERM" in text
    assert "far: there is no program 'x'; apt-get install x" in text
    assert "1 kept, 1 broken, 1 not here" in text


def test_rows_say_what_is_lacking(tmp_path):
    found = {
        "here": workload(command="sh -c true"),
        "kernel": workload(command="stream --bytes 1M", environment="native"),
        "package": workload(command="no-such-program", package="such"),
        "inside": workload(command=["sh", "-c", "x"], package="no-such-package"),
        "ours": workload(command="{python} -m castmates.x"),
        "environment": workload(command="python x", environment="tfmodels"),
        "data": workload(command="sh {inputs}", inputs="tfmodels-images"),
        "made": workload(command="sh {inputs}", inputs="tfmodels-tokens"),
        "text": workload(command="sh {inputs}", inputs="text"),
    }
    (tmp_path / "tfmodels.lock").write_text("x==1\n")
    (tmp_path / "tfmodels.yaml").write_text("dependencies: ['python >=3.11,<3.14']\n")
    made = inputs.ready_file(inputs.location("tfmodels-tokens", tmp_path, tmp_path))
    made.parent.mkdir(parents=True)
    made.write_text("{}")
    told = {row["workload"]: row["remedy"] for row in rows(found, tmp_path, tmp_path)}
    assert told == {
        "here": "",
        "kernel": "",
        "package": "apt-get install such",
        "inside": "apt-get install no-such-package",
        "ours": "",
        "environment": "castmates internals build-environment tfmodels",
        "data": "castmates internals build-environment tfmodels",
        "made": "",
        "text": "",
    }
