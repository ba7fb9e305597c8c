"""What a trace shows by what its user may record, and how many files perf may have open."""

import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from castmates.linux import open_files
from castmates.linux.tracing_rights import SHOWN, USERS, Rights, not_shown, sampled, table
from castmates.runner.tracing import recorders
from castmates.runner.tracing.programs import Source
from castmates.runner.tracing.record import missing
from castmates.study.trace_launches import trace_name
from castmates.study.tracing_keys import FAMILIES
from castmates.timeline.perf.header import read_header
from tests.unit.makers import plan, study, workloads
from tests.unit.perf_maker import MEMBER, PerfData

DOCS = Path(__file__).parents[2] / "docs"
ROOT, _, GRANTED, PLAIN = USERS.values()
NOTHING = Rights(False, False, False, "", ("there is no perf",))


def test_the_table_in_the_documentation_is_that_of_the_code():
    page = (DOCS / "tracing.md").read_text(encoding="utf-8")
    assert "\n".join(table()) in page
    assert {family for each in SHOWN for family in each.families} == set(FAMILIES)


def test_what_is_not_shown_is_what_was_asked_for_and_cannot_be_had():
    assert not_shown(FAMILIES, ROOT) == []
    (lacking,) = not_shown(["scheduler"], GRANTED)
    assert lacking.words == "who woke a thread, how long it waited to run and who ran instead"
    assert not_shown(["faults", "stacks"], GRANTED) == []
    (lacking,) = not_shown(["faults"], PLAIN)
    assert lacking.words == "the kernel's own part of page faults and stacks"
    assert len(not_shown(FAMILIES, NOTHING)) == len(SHOWN) - 1, "and no part of what is not there"


@pytest.mark.parametrize(
    ("event", "spelled", "name"),
    [
        ("cache-misses", "cache-misses/period=70/D", "cache-misses"),
        ("LLC-load-misses:u", "LLC-load-misses/period=70/uD", "LLC-load-misses:u"),
        ("r1a8", "r1a8/period=70/D", "r1a8"),
        ("mem_load_retired.l3_miss", "cpu/mem_load_retired.l3_miss,period=70/D", "mem_load_retired.l3_miss"),
        ("slots:uk", "cpu/slots,period=70/ukD", "slots:uk"),
        ("cpu/event=0xd1,umask=0x20/", "cpu/event=0xd1,umask=0x20,period=70/D", "event=0xd1,umask=0x20"),
        ("cpu/slots/u", "cpu/slots,period=70/uD", "slots:u"),
    ],
)
def test_an_event_is_sampled_by_its_period_in_perfs_words_and_keeps_its_name(tmp_path, event, spelled, name):
    assert sampled(event, 70, kernel=True).replace("cpu_core/", "cpu/") == spelled
    assert sampled("cycles", 70, kernel=False) == "cycles/period=70/uD"
    recording = PerfData(("dummy:uk", spelled))
    recording.switch(0, MEMBER, 0, out=False)
    recording.write(tmp_path / "perf.data")
    assert [(each.name, each.period, each.is_count) for each in read_header(tmp_path / "perf.data").events[1:]] == [
        (name, 70, True)
    ]


def launch_of(**keys):
    programs = workloads("plain", "stream")
    whole = plan(study(["plain"], ["stream"], trace={"mixes": ["plain+stream"]} | keys), programs=programs)
    assert trace_name(whole.traces[0]) == "plain+stream"
    return whole.traces[0]


def test_each_reason_stands_once_in_what_a_trace_lacks():
    can = replace(PLAIN, reasons=("system calls need a grant", "who woke a thread needs another"), stacks=False)
    lacking = "; ".join(can.reasons)
    outcome = SimpleNamespace(launch=launch_of(), recorded=[], hardware={})
    for refused in ("perf", "stacks"):
        sentences = missing(outcome, [[Source(refused, reason=lacking)], [Source("numbers", reason="it broke")]], can)
        text = " ".join(sentences)
        assert [text.count(reason[1:]) for reason in can.reasons] == [1, 1]
        assert "numbers: it broke." in sentences
        assert "system calls, and what a thread waits in by its call" in text


def test_perf_is_not_started_where_it_would_need_too_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(recorders, "rights", lambda: replace(ROOT, program="perf", perf="6.1"))
    monkeypatch.setattr(open_files, "most", lambda: 66)
    out = SimpleNamespace(scene=SimpleNamespace(active=("plain@0",)), events={})
    launch = launch_of()
    name = launch.cohort.lead.name
    out.scene.active = (name,)
    found = recorders.begun(launch, out, tmp_path, lambda *_: [os.getpid()])
    assert found == {}
    for each in out.events.values():
        assert "open files" in each.reason
        assert "may have 66: record fewer families" in each.reason
    assert not list(tmp_path.iterdir())


def test_a_child_may_open_as_many_files_as_it_is_counted_to():
    asks = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    done = subprocess.run(
        [sys.executable, "-c", asks], preexec_fn=open_files.raise_limit, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) in (open_files.most(), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    assert open_files.needed(events=3, threads=8, cpus=2) >= 71, "what perf 6.1 had open of eight threads"
