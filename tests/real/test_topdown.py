"""Top-Down of members in the windows of its turns: with a perf that is played, and with the real one here."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from castmates.counters.choose import choose_counters
from castmates.counters.events.budget import Rota
from castmates.counters.topdown.probe import Known, Offer
from castmates.counters.topdown.process import Answer, Asked, series_of
from castmates.counters.topdown.topdown import NoTopdown, Topdown, choose_topdown
from castmates.protocols import Held
from castmates.study.spec import Counting
from tests.real.busy import busy, children
from tests.unit.counters.perf_prints import PRINTS

# Obeys its control pipe like `perf stat -D -1 --control fd:A,B --log-fd C`, and prints what a real one printed.
PLAYED = """#!{python} -S
import os, signal, sys
words = sys.argv
def end(*_):
    text = open({text!r}).read() if asked == [b"disable", b"enable", b"disable"] else "not enabled and disabled in turn"
    os.write(int(words[words.index("--log-fd") + 1]), text.encode())
    sys.exit(130)
asked = []
signal.signal(signal.SIGINT, end)
orders, answers = words[words.index("--control") + 1].removeprefix("fd:").split(",")
open({told!r}, "a").write(" ".join(words[2:]) + "\\n")
for line in open(int(orders), "rb", buffering=0):
    asked.append(line.strip())
    os.write(int(answers), b"ack\\n\\0")
signal.pause()
"""
SOFTWARE = """#!/bin/bash
words=("$@")
for i in "${!words[@]}"; do [ "${words[i]}" = -M ] && words[i]=-e && words[i+1]=task-clock; done
exec perf "${words[@]}"
"""
ZEN = {
    name: Known((f"PipelineL{level}",))
    for level, name in ((1, "frontend_bound"), (1, "retiring"), (2, "backend_bound_cpu"))
}


def played(folder, print_of, told="told"):
    file = folder / "perf"
    file.write_text(PLAYED.format(python=sys.executable, text=str(PRINTS / print_of), told=str(folder / told)))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def window(counter, active, round_number):
    counter.get_ready(active, round_number)
    counter.start(active)
    assert counter.stop() == []
    return {(one.subject, one.name): one for one in counter.counts()}


@pytest.fixture
def held():
    """A member that sleeps."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield Held(process.pid, sorted(os.sched_getaffinity(0)))
    process.kill()
    process.wait()


def test_the_shares_of_every_active_member(tmp_path, held):
    found = Offer(played(tmp_path, "synthetic/zen4-smt.json.txt"), "6.5", (("PipelineL1", "PipelineL2"),), metrics=ZEN)
    counter = Topdown(found, Rota(), "thread")
    counter.attach({"lead@0": held, "stream@1": held})
    before = children()
    counts = window(counter, ["lead@0", "stream@1"], 1)
    assert children() == before
    assert len(counts) == 2 * 13
    one = counts["stream@1", "SMT_Contention"]
    assert one.value == pytest.approx(0.178046)
    assert (one.status, one.source, one.kind, one.level, one.scope) == ("counted", "perf stat", "metric", 1, "thread")
    assert one.group == "PipelineL1,PipelineL2"
    assert counts["lead@0", "Memory_Bound"].level == 2
    assert counter.about()["scope"] == "thread"
    words = (tmp_path / "told").read_text().splitlines()[0].split()
    assert words[:3] == ["-D", "-1", "--control"]
    assert words[6:] == ["-j", "-M", "PipelineL1,PipelineL2", "-p", str(held.pid)]


def test_each_group_has_its_turn_and_other_rounds_start_nothing(tmp_path, held):
    rota = Rota()
    rota.join(2)
    found = Offer(played(tmp_path, "public/interval-threshold.json.txt"), "6.13", (("TopdownL1",), ("TopdownL2",)))
    counter = Topdown(found, rota, "thread")
    counter.attach({"lead@0": held})
    assert counter.own_rounds == [3, 4]
    given = {number: window(counter, ["lead@0"], number) for number in range(1, 9)}
    assert [number for number, counts in given.items() if counts] == [3, 4, 7, 8]
    asked = [line.partition("-M ")[2].split()[0] for line in (tmp_path / "told").read_text().splitlines()]
    assert asked == ["TopdownL1", "TopdownL2"] * 2
    assert "TopdownL2 in round 4 of every 4" in counter.about()["metrics"]


def test_a_level_that_does_not_add_up_is_noted(tmp_path, held):
    found = Offer(played(tmp_path, "public/hybrid-user.csv.txt"), "6.8", (("TopdownL1",),), format=("-x", ","))
    counter = Topdown(found, Rota(), "thread")
    counter.attach({"lead@0": held})
    one = window(counter, ["lead@0"], 1)["lead@0", "Frontend_Bound"]
    assert "level 1 adds up to 1.43" in one.note
    assert (one.status, one.running) == ("scaled", 0.42)  # of cpu_atom/cycles, which no metric stands beside


def test_a_perf_that_prints_no_metric_leaves_all_that_was_asked_for_not_counted(tmp_path, held):
    found = Offer(played(tmp_path, "recorded-6.1/plain.json.txt"), "6.1", (("PipelineL1",),), metrics=ZEN)
    counter = Topdown(found, Rota(), "thread")
    counter.attach({"lead@0": held})
    counts = window(counter, ["lead@0"], 1)
    assert [name for _, name in counts] == ["Frontend_Bound", "Retiring"]
    assert {(one.value, one.status) for one in counts.values()} == {(None, "not counted")}


@pytest.mark.parametrize(("script", "word"), [("exit 7", "status 7"), ("exec sleep 60", "did not acknowledge")])
def test_a_window_whose_perf_fails_says_why_and_leaves_nothing(tmp_path, monkeypatch, held, script, word):
    if "sleep" in script:
        monkeypatch.setattr("castmates.counters.topdown.topdown.READY_WITHIN_S", 0.3)
    file = tmp_path / "perf"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    counter = Topdown(Offer(str(file), "6.1", (("TopdownL1",),)), Rota(), "thread")
    counter.attach({"lead@0": held})
    before = children()
    counts = window(counter, ["lead@0"], 1)
    assert len(counts) == 4
    assert all(word in one.note and one.status == "not counted" for one in counts.values())
    counter.get_ready(["lead@0"], 1)
    counter.close()  # amid a window
    counter.close()
    assert children() == before


def printed(intervals):
    """What -I and --summary print: shares of each interval, then of the whole. Synthetic."""
    one = '{%s"event-runtime" : 5, "pcnt-running" : 100.00, "metric-value" : "%f", "metric-unit" : "%%  tma_%s"}'
    told = [
        one % (f'"interval" : {at:.9f}, ', share, name)
        for at, frontend in intervals
        for name, share in (("frontend_bound", frontend), ("retiring", 50.0))
    ]
    return "\n".join([*told, one % ("", 12.5, "frontend_bound"), one % ("", 50.0, "retiring")])


def test_intervals_are_samples_and_the_whole_is_the_count(tmp_path, held):
    (tmp_path / "print").write_text(printed([(600.0, 10.0)]))
    found = Offer(played(tmp_path, tmp_path / "print"), "6.13", (("TopdownL1",),), in_series=True, metrics=ZEN)
    counter = Topdown(found, Rota(), "thread", rate=10.0)
    counter.attach({"lead@0": held})
    counter.get_ready(["lead@0"], 1)
    counter.start(["lead@0"])
    assert counter.stop() == []
    late = counter.late_samples()
    assert {(one.source, one.subject) for one in late} == {("topdown", "lead@0")}
    (whole,) = (one for one in counter.counts() if one.name == "Frontend_Bound")
    assert whole.value == 0.125
    assert "-I 100 --summary" in (tmp_path / "told").read_text()
    assert Topdown(Offer(in_series=False), Rota(), "thread", rate=10.0).series_rate == 0


def test_an_interval_is_a_sample_where_it_overlaps_the_window():
    text = printed([(0.1, 99.0), (0.2, 10.0), (0.4, 20.0), (50.0, 77.0), (60.0, 88.0)])
    asked = Asked("lead@0", ["Frontend_Bound"])
    began = 10**9
    samples = series_of(asked, Answer(text, ""), began, began + 150_000_000, began + 410_000_000)
    # The first one ended before the window opened; the last one began after it closed.
    assert [(one.t_ns - began, one.value) for one in samples] == [
        (200_000_000, 0.1), (400_000_000, 0.2), (50_000_000_000, 0.77)]  # fmt: skip
    assert series_of(asked, Answer(text, "", "it failed"), began, began, began + 10**9) == []


def test_a_perf_that_is_only_slow_does_not_end_the_counting_by_group(tmp_path, monkeypatch, held):
    monkeypatch.setattr("castmates.counters.topdown.topdown.group_for_perf", lambda _held: "castmates-1/lead")
    monkeypatch.setattr("castmates.counters.topdown.topdown.READY_WITHIN_S", 0.3)
    file = tmp_path / "perf"
    file.write_text("#!/bin/sh\nexec sleep 60\n")
    file.chmod(0o755)
    counter = Topdown(Offer(str(file), "6.13", (("TopdownL1",),)), Rota(), "auto")
    counter.attach({"lead@0": held})
    one = window(counter, ["lead@0"], 1)["lead@0", "Retiring"]
    assert (one.status, one.scope) == ("not counted", "cgroup")
    assert "did not acknowledge" in one.note
    assert "not by cgroup" not in counter.about()


def test_where_groups_may_not_be_counted_threads_are(tmp_path, monkeypatch, held):
    monkeypatch.setattr("castmates.counters.topdown.topdown.group_for_perf", lambda _held: "castmates-1/lead")
    file = tmp_path / "perf"
    plays = played(tmp_path, "public/trailing-comma.json.txt")
    Path(plays).rename(tmp_path / "plays")
    file.write_text(f'#!/bin/sh\ncase "$*" in *for-each-cgroup*) echo "Error: No permission" >&2; exit 255;; esac\n'
                    f'exec {tmp_path}/plays "$@"\n')  # fmt: skip
    file.chmod(0o755)
    counter = Topdown(Offer(str(file), "6.13", (("TopdownL1",),)), Rota(), "auto")
    counter.attach({"lead@0": held})
    for _ in range(2):
        one = window(counter, ["lead@0"], 1)["lead@0", "Retiring"]
        assert (one.status, one.scope) == ("counted", "thread")
    assert "No permission" in counter.about()["not by cgroup"]
    strict = Topdown(Offer(str(file), "6.13", (("TopdownL1",),)), Rota(), "cgroup")
    strict.attach({"lead@0": held})
    assert "No permission" in window(strict, ["lead@0"], 1)["lead@0", "Retiring"].note


@pytest.mark.needs("perf", "events")
def test_the_real_perf_counts_through_the_same_path(tmp_path, held):
    file = tmp_path / "perf"  # the real one, asked for software events where we ask for metrics
    file.write_text(SOFTWARE)
    file.chmod(0o755)
    with busy(threads=2) as pid:
        counter = Topdown(Offer(str(file), "6.1", (("TopdownL1",),)), Rota(), "auto")
        counter.attach({"lead@0": Held(pid, [0])})
        counter.get_ready(["lead@0"], 1)
        counter.start(["lead@0"])
        counter.stop()
        answers = {member: one.perf.end() for member, one in counter._watches.items()}
    assert answers["lead@0"].why == ""
    assert '"task-clock"' in answers["lead@0"].text


def test_without_such_metrics_every_member_gets_not_supported_and_the_reason(held):
    counter = NoTopdown(Offer(why_not="no such metrics here"))
    counter.attach({"lead@0": held})
    counts = window(counter, ["lead@0"], 1)
    assert {(one.value, one.status, one.note) for one in counts.values()} == {
        (None, "not supported", "no such metrics here")}  # fmt: skip
    assert len(counts) == 4


def test_the_reason_is_said_once_and_nothing_is_asked_for_where_none_is_wanted(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    said = []
    assert choose_topdown(0, "auto", 10.0, Rota(), said.append) == []
    (counter,) = choose_topdown(2, "auto", 10.0, Rota(), said.append)
    assert isinstance(counter, NoTopdown)
    (words,) = said
    assert words.startswith("no Top-Down metrics: there is no program perf here; install linux-perf (Debian)")


def test_our_own_counters_are_read_nearest_to_the_window(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    wanted = Counting(events=(("kernel", ("page-faults",)),), topdown=1)
    assert [one.name for one in choose_counters(wanted, [0], str)] == ["topdown", "counters"]
