"""The day on a rented machine: order, resuming, time, what a machine is called and what is sent of it."""

import gzip
import io
import json
import signal
import tarfile
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.hardware_day import bundle, day, doctor, page, steps, sweep
from castmates.hardware_day.bundle import Names, pack
from castmates.hardware_day.steps import Diary, Ended, Place, Step, follow
from castmates.machine.capture.capture import record
from castmates.machine.journal import Change, Journal
from castmates.machine.topology import read_topology
from castmates.runner.cleanup.restore import Restored
from tests.unit import machines, results_maker, sysfs
from tests.unit.snapshots import assert_as_before, refusal

HOST, USER, HOME = "zanzibar-prod-7", "quetzalcoatl", "/home/quetzalcoatl"
NAMES = Names.of([f"{HOST}.example.org", HOST], [USER], [HOME, "/vault/tenant-9/project"])
SECRETS = (
    HOST,
    USER,
    "tenant-9",
    "10.20.30.40",
    "5c:e9:1e:aa:bb:cc",
    "6f1c2a7e-0b57-4d86-9f0a-1f0e8a2b3c4d",
    "acmekernel",
)
FOLDERS = f"{HOME}/bin/x, /vault/tenant-9/project/y and /root/z"
PLANTED = f"on {HOST} ({HOST.upper()}.example.org) {USER} ran {FOLDERS}, by {', '.join(SECRETS[3:6])}"
MACHINE = {"cpu_model": "Synthetic CPU", "kernel": "6.1.0-acmekernel"}


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "day", tmp_path / "cache", NAMES)
    made.project.mkdir(parents=True)
    return made


@pytest.fixture
def diary(place):
    return Diary.of(place, MACHINE)


class Days:
    """Steps that only say that they ran, and how much time they had."""

    def __init__(self, **ends):
        self.ran, self.ends = [], ends

    def step(self, name, seconds=10.0, limit=30.0, cannot=""):
        def run(place, given, say):
            self.ran.append(
                (name, given, sorted(json.loads(place.steps_file.read_text())["steps"]) if self.ran else [])
            )
            what = self.ends.get(name, "")
            if isinstance(what, BaseException):
                raise what
            return what

        return Step(name, f"about {name}", seconds, limit, run, cannot)


def statuses(diary):
    return {name: one.status for name, one in Diary.of(diary.place, MACHINE).outcomes.items()}


def test_steps_go_in_order_and_what_fails_or_cannot_be_done_ends_no_day(diary):
    days = Days(two="the disk is full.", three=OSError(28, "No space left on device"))
    said = []
    planned = [
        days.step("one"),
        days.step("two"),
        days.step("three"),
        days.step("four", cannot="one core."),
        days.step("five"),
    ]
    day.follow_all(planned, diary, 1000, said.append)
    # Each is on disk before the next one begins.
    assert [(name, known) for name, _, known in days.ran] == [
        ("one", []), ("two", ["one"]), ("three", ["one", "two"]), ("five", ["four", "one", "three", "two"])
    ]  # fmt: skip
    assert statuses(diary) == {
        "one": "done", "two": "failed", "three": "failed", "four": "not possible here", "five": "done"
    }  # fmt: skip
    assert "two: failed (1 s): the disk is full." in said
    assert "four: not possible here: one core." in said


def test_a_second_day_repeats_what_failed_was_ended_or_never_began(diary):
    days = Days(two="busy.", three=KeyboardInterrupt())
    planned = [days.step(name) for name in ("one", "two", "three", "four")]
    with pytest.raises(KeyboardInterrupt):
        day.follow_all(planned, diary, 1000, print)
    assert statuses(diary) == {"one": "done", "two": "failed", "three": "interrupted"}
    again, days.ran, days.ends = Diary.of(diary.place, MACHINE), [], {}
    day.follow_all(planned, again, 1000, print)
    assert [name for name, *_ in days.ran] == ["two", "three", "four"]
    assert set(statuses(diary).values()) == {"done"}


def test_a_day_belongs_to_one_machine_also_beside_another_of_its_kind(place, monkeypatch):
    ids = dict.fromkeys(steps.MACHINE_IDS, "a" * 32)
    monkeypatch.setattr(steps, "read_text", ids.get)
    Diary.of(place, MACHINE).write()
    assert Diary.of(place, MACHINE).outcomes == {}
    assert "a" * 32 not in place.machine_file.read_text()
    assert place.machine_file not in day.members(place).values()
    for unknown in (None, "", "uninitialized"):
        ids.update(dict.fromkeys(steps.MACHINE_IDS, unknown))
        assert Diary.of(place, MACHINE).outcomes == {}
    ids.update(dict.fromkeys(steps.MACHINE_IDS, "b" * 32))
    with pytest.raises(CastmatesError, match="holds the day of another machine"):
        Diary.of(place, MACHINE)


def test_what_the_kernels_words_decide_is_done_again_under_others(diary, monkeypatch):
    words = {"text": "quiet"}
    monkeypatch.setattr(steps.host, "command_line", lambda: words["text"])
    diary.write()
    days = Days()
    planned = [days.step(name) for name in ("capture", "memory-peak", "verify-rdt", "sweep")]
    for text, done in (
        ("quiet", ["capture", "memory-peak", "verify-rdt", "sweep"]),
        ("quiet", []),
        ("quiet rdt=!mba", ["capture", "verify-rdt", "sweep"]),
        ("quiet rdt=!mba", []),
    ):
        words["text"], days.ran = text, []
        day.follow_all(planned, Diary.of(diary.place, MACHINE), 1000, print)
        assert [name for name, *_ in days.ran] == done


def test_no_step_gets_more_time_than_its_own_or_than_is_left(diary):
    days = Days()
    follow(days.step("short", limit=30), diary, 500, print)
    follow(days.step("last", limit=float("inf")), diary, 77, print)
    follow(days.step("late", seconds=90), diary, 77, print)
    assert [(name, given) for name, given, _ in days.ran] == [("short", 30), ("last", 77)]
    assert diary.outcomes["late"] == replace(
        diary.outcomes["late"], status="no time left", reason="it takes about 2 min, and 77 s are left."
    )


def test_other_folders_and_days_that_are_too_short_are_one_sentence(place, tmp_path, monkeypatch):
    Diary.of(place, MACHINE).write()
    (other := tmp_path / "other").mkdir()
    (other / "thesis.tex").write_text("x")
    (file := tmp_path / "file").write_text("x")
    monkeypatch.setattr(sweep, "shortest", lambda _: 300.0)
    monkeypatch.setattr(day, "read_topology", lambda: read_topology(sysfs.build(tmp_path / "root", machines.xeon())))
    monkeypatch.setattr(day, "resctrl", lambda _: {"kernel": True})
    monkeypatch.chdir(tmp_path)
    said = {
        "another machine": refusal(Diary.of, place, MACHINE | {"cpu_model": "Another"}),
        "other files": refusal(day.spend, other, 90, True, print),
        "a file": refusal(day.spend, file, 90, True, print),
        "too short": refusal(day._planned, Diary.of(place, MACHINE), place, 10, print),
    }
    assert_as_before("hardware-day", {case: text.replace(str(tmp_path), "…") for case, text in said.items()})


@pytest.mark.parametrize(("machine", "minutes"), [("xeon", 10.0), ("epyc", 14 * 5 / 6 + 10.0)])
def test_the_trial_of_masks_is_planned_by_packages_and_caches(machine, minutes, tmp_path, monkeypatch):
    topology = read_topology(sysfs.build(tmp_path, getattr(machines, machine)()))
    monkeypatch.setattr(day, "resctrl", lambda _: {"kernel": True})
    assert day.rdt_seconds(topology) == pytest.approx(60 * minutes)
    monkeypatch.setattr(day, "resctrl", lambda _: {"kernel": False})
    assert day.rdt_seconds(topology) == day.NO_RESCTRL_S


# The sweep.


@pytest.fixture
def planner(place, monkeypatch):
    """A planner that knows 11 partitions, of which each takes 10 s in a launch; and a sweep that ends as it is told."""
    asked, ends = [], {"code": 0}

    def bounded(words, log, seconds, say, folder=None, aloud=True):
        assert folder == place.project
        study = sweep._study((folder / words[1]).read_text())
        split, launches = study["cache"]["sweeps"][0]["split"], study["budget"]["launches"]
        ways = list(range(1, 12)) if split == "all" else split
        asked.append((words[0], launches, split))
        if words[0] == "plan":
            found = {
                "seconds": [0, 10 * launches * len(ways)],
                "cohorts": [1, 2],
                "partitions": [f"split-{n}" for n in ways],
            }
            return Ended(0, json.dumps(found), "")
        return Ended(ends["code"], "", "" if ends["code"] == 0 else "it was ended.")

    monkeypatch.setattr(sweep, "bounded", bounded)
    return asked, ends


@pytest.mark.parametrize(
    ("seconds", "launches", "split"),
    [
        (10_000, 20, "all"),
        (900, 8, "all"),
        (330, 3, "all"),
        (329, 6, [2, 4, 6, 8, 10]),  # launches are dropped before partitions
        (150, 3, [2, 4, 6, 8, 10]),
        (100, 3, [3, 7, 11]),
    ],
)
def test_launches_are_dropped_before_partitions(place, planner, seconds, launches, split):
    asked, _ = planner
    assert sweep.run(place, sweep.CLOSING_S + seconds, print) == ""
    assert asked[-1] == ("sweep", launches, split)


def test_a_sweep_that_fits_in_no_size_says_so_and_measures_nothing(place, planner):
    asked, _ = planner
    assert "no size of its study fits" in sweep.run(place, sweep.CLOSING_S + 80, print)
    assert {command for command, *_ in asked} == {"plan"}
    assert sweep.shortest(place) == 90 + sweep.CLOSING_S


def test_of_a_sweep_whose_time_was_over_whole_launches_are_shown(place, planner):
    asked, ends = planner
    ends["code"] = None
    for path in ("chase/1", "chase/2", "chase/3", "gather/1", "gather/2"):
        (folder := sweep.results_folder(place).launches / path).mkdir(parents=True)
        (folder / "launch.json").write_text("{}")
    sweep._write(place, "study.yaml", 12, "all")
    why = sweep.run(place, sweep.CLOSING_S + 900, print)
    assert why == "its time was over after 2 of 8 launches; the same command measures the rest."
    assert [one for one in asked if one[0] == "sweep"] == [("sweep", 8, "all"), ("sweep", 2, "all")]


def test_a_sweep_that_has_begun_keeps_its_partitions(place, planner):
    asked, _ = planner
    sweep._write(place, "study.yaml", 6, [2, 6])
    (folder := sweep.results_folder(place).launches / "chase/1").mkdir(parents=True)
    (folder / "launch.json").write_text("{}")
    assert sweep.shortest(place) == 60 + sweep.CLOSING_S
    sweep.run(place, sweep.CLOSING_S + 9000, print)
    assert asked[-1] == ("sweep", 20, [2, 6])


# What is sent.

POINT = {"step": 100, "percent": 100.0, "low": 99.0, "high": 101.0, "bytes_per_s": 1e9}
TENTH = POINT | {"step": 10, "percent": 12.5}
RECORDS = {
    "rdt": {
        "identity": MACHINE, "at": "2026-11-30T10:00:00+00:00", "platform": "measured",
        "parts": {"masks": {"verdict": "works", "said": PLANTED},
                  "isolation": {"verdict": "not isolated", "said": "No."}},
        "caches": [
            {
                "llc": 0,
                "isolation": {
                    "verdict": "not isolated",
                    "windows": {"alone": [[2.0, None], [2.2, None]], "apart": [[4.2, None]], "shared": [[8.4, None]]},
                },
                "throttles": {"unit": "%", "curves": [{"cores": 4, "curve": [POINT, TENTH]}]},
            }
        ],
    },
    "memory-peak": {"identity": MACHINE, "said": f"The peak is high {PLANTED}", "platform": "measured",
                    "curve": [{"cores": 1, "read": 1e10, "triad": 1.2e10}]},
    "counters": {"identity": MACHINE, "events": {"instructions": "verified", "cycles": "wrong"}, "platform": "measured",
                 "trials": [{"why": PLANTED}], HOST: 1},
    "truth": {"said": f"Found {PLANTED}", "verdict": "found", "platform": "measured",
              "losses": [{"known": 5.0, "loss": 5.01, "low": 4.9, "high": 5.1, "verdict": "found"}]},
}  # fmt: skip


def test_counts_of_the_kernel_alone_are_no_counters(place):
    events = {"page-faults": "verified", "task-clock:u": "verified", "instructions:u": "not checked"}
    place.keep("counters", {"events": events, "platform": "measured"})
    (found,) = page.verdicts(place)
    assert found.word == "no hardware counter was checked"
    assert page.bad([found]) == ["counters"]
    place.keep("counters", {"events": events | {"instructions:u": "verified"}, "platform": "measured"})
    assert [each.word for each in page.verdicts(place)] == ["verified"]


@pytest.fixture
def whole(place, diary, tmp_path, monkeypatch):
    """A day that has everything, with names in all that it is made of."""
    root = sysfs.build(tmp_path / "root", machines.xeon())
    sysfs.write(root / "proc/sys/kernel/hostname", HOST)
    sysfs.write(root / "proc/sys/kernel/osrelease", "6.1.0-acmekernel")
    sysfs.write(root / "proc/cmdline", f"root=/dev/mapper/{HOST} isolcpus=1 user={USER}")
    record(place.capture_file, root)
    for name, content in RECORDS.items():
        place.keep(name, content)
    results = results_maker.make(
        sweep.results_folder(place).path,
        leads=("chase-half", "gather-half"),
        antagonists=("stream",),
        machine=results_maker.MACHINE | {"hostname": HOST, "kernel": "6.1.0-acmekernel", "cmdline": PLANTED,
                                         "transparent_hugepages": PLANTED},
    )  # fmt: skip
    for name, column in (("launches", "reason"), ("windows", "blamed")):
        table = pd.read_parquet(results / f"tables/{name}.parquet").assign(**{column: PLANTED})
        sweep.write_table(table, results / f"tables/{name}")
    sweep._write(place, "study.yaml", 5, "all")
    facts = results_maker.MACHINE | {
        "hostname": HOST,
        "hypervisor_flag": False,
        "virtualisation": {},
        "perf": {"hardware": PLANTED},
    }
    real = page.machine_facts
    monkeypatch.setattr(page, "machine_facts", lambda *root: real(*root) if root else facts)
    monkeypatch.setattr(day, "restore_everything", lambda: Restored([PLANTED]))
    days = Days(truth=PLANTED)
    planned = [
        days.step(name) for name in ("capture", "memory-peak", "verify-counters", "verify-rdt", "truth", "sweep")
    ]
    day.follow_all(planned, diary, 1000, print)
    sweep.keep(place)
    return planned


def unpacked(file):
    with tarfile.open(file) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive.getmembers()}


def readable(name, content):
    """All that somebody can read of a file."""
    if name.endswith(".gz"):
        return gzip.decompress(content).decode()
    if name.endswith(".parquet"):
        table = pd.read_parquet(io.BytesIO(content))
        return content.decode("latin-1") + table.to_csv()
    return content.decode()


def test_nothing_in_the_bundle_shows_whose_machine_it_is(place, diary, whole):
    said = []
    day.close(whole, diary, day.settings(), said.append)
    sent = unpacked(place.bundle_file)
    assert {"machine.json.gz", "rdt.json", "counters.json", "memory-peak.json", "truth.json", "index.html",
            "steps.json", "study.yaml", "sweep-machine.json", "tables/effects.parquet", "tables/launches.csv",
            "tables/windows.parquet"} <= sent.keys()  # fmt: skip
    for name, content in sent.items():
        text = readable(name, content).lower()
        assert not [secret for secret in (*SECRETS, HOME, "/root/z") if secret in text], name
    assert "(host)" in sent["rdt.json"].decode()
    assert json.loads(sent["counters.json"])["(host)"] == 1
    with tarfile.open(place.bundle_file) as archive:
        assert {(one.uid, one.gid, one.uname, one.gname, one.mtime) for one in archive.getmembers()} == {
            (0, 0, "", "", 0)
        }


def test_what_still_has_a_name_is_refused_whatever_wrote_it(place, tmp_path):
    files = {
        "rdt.json": json.dumps({"said": [PLANTED]}),
        "index.html": f"<html><style>.{USER} {{}}</style><p title='x'>About {HOST}</p></html>",
        "tables/a.csv": f"reason\n{USER}\n",
        "steps.json": json.dumps({"steps": {}}),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    pd.DataFrame({"reason": ["", HOME]}).to_parquet(tmp_path / "tables/b.parquet")
    out = pack(tmp_path / "x.tar.gz", {name: tmp_path / name for name in (*files, "tables/b.parquet")}, NAMES)
    assert unpacked(tmp_path / "x.tar.gz").keys() == {"steps.json"}
    assert len(out) == 4
    assert "(user)" in out[2]


def test_no_other_programs_and_no_host_stay_in_a_table():
    took = "foreign load: others took 0.12 s beside CPUs 3 (limit 1 %)"
    who = ["train,llm v2 (pid 123)", "children of (sd-train) (pid 7)", "interrupts", ""]
    table = pd.DataFrame(
        {
            "reasons": [f"{took}, mostly {who[0]}", f"{took}, among them {who[1]}; offline: CPU 3", took, ""],
            "reason_kinds": ["foreign load", "foreign load; offline", "foreign load", ""],
            "blamed": who,
            "reason": ["2 rejected (foreign load ×2; train_llm (pid 9) ×2)", "by train (pid 3)", "x (pid 3)", "failed"],
            "host": ["node-17.cluster", "a and b", "", "c"],
        }
    )
    sent = NAMES.table(table)
    assert "train" not in sent.to_csv()
    assert set(sent["blamed"]) == {""}
    assert list(sent["host"]) == ["(host)", "(host)", "", "(host)"]
    assert list(sent["reason_kinds"]) == list(table["reason_kinds"])
    assert list(sent["reasons"]) == [
        f"{took}, mostly (program)", f"{took}, among them (program); offline: CPU 3", took, ""
    ]  # fmt: skip
    assert list(sent["reason"]) == [
        "2 rejected (foreign load ×2; (program) ×2)", "by (program)", "(program)", "failed"
    ]  # fmt: skip


def test_folders_of_clusters_and_addresses_go_and_versions_stay():
    for folder in ("/users/x1/a", "/proj/lab-PG0/b", "/nfs/team/c", "/nfs4/team", "/home2/x1", "/projects/p/q"):
        assert NAMES.without(f"in {folder}, here") == "in (path), here", folder
    for address in ("10.20.30.40", "2001:db8::1", "fe80:1::5ee9:1eff:feaa:bbcc", "fe80::5ee9:1eff:feaa:bbcc",
                    "2001:db8:0:0:0:0:0:1"):  # fmt: skip
        assert NAMES.without(f"at {address}.") == "at (address).", address
    for text in ("perf version 6.8.0.45", "Version 1.2.3.4", "add::fed", "by 1.2.3.4.5", "/sys/users"):
        assert NAMES.without(text) == text


def test_names_that_are_nobodys_and_fields_of_ours_stay(tmp_path):
    names = Names.of(["ubuntu", "localhost"], ["root", "masks", "max"], ["/", "/tmp"])
    assert names.words == {"masks": "(user)", "max": "(user)"}
    assert names.without({"masks": ["as root", "maximal, by max"]}) == {"masks": ["as root", "maximal, by (user)"]}
    parts = {
        f"ssh {USER}@x.{HOST}.example.org.": "ssh (user)@x.(host).",
        f"run-{USER}_1, {USER}s": f"run-(user)_1, {USER}s",
    }
    assert {text: NAMES.without(text) for text in parts} == parts
    file = tmp_path / "index.html"
    file.write_text("<style>p { max-width: 1em }</style><p>Verdict</p>")
    assert pack(tmp_path / "x.tar.gz", {"index.html": file}, Names.of([], ["Verdict"], [])) == []


def test_the_largest_tables_stay_out_of_a_bundle_that_would_be_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "MOST", 20_000)
    import random

    sizes = {"steps.json": 10, "tables/windows.csv": 90_000, "tables/effects.csv": 9_000, "tables/launches.csv": 60_000}
    dice = random.Random(1)
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = f"{{}}{' ' * size}" if name == "steps.json" else "\n".join(str(dice.random()) for _ in range(size // 20))
        (tmp_path / name).write_text(text)
    out = pack(tmp_path / "x.tar.gz", {name: tmp_path / name for name in sizes}, NAMES)
    assert [line.split()[0] for line in out] == ["tables/windows.csv", "tables/launches.csv"]
    assert (tmp_path / "x.tar.gz").stat().st_size <= 20_000
    monkeypatch.setattr(bundle, "MOST", 100)
    with pytest.raises(CastmatesError, match="without tables"):
        pack(tmp_path / "x.tar.gz", {name: tmp_path / name for name in sizes}, NAMES)


# The page.


def test_the_page_says_what_the_machine_is_and_what_it_does_not_pass(place, diary, whole):
    diary.restored = "Everything is as it was."
    lines = page.write(place, whole, diary)
    text = place.page_file.read_text()
    for words in ("<strong>not isolated</strong>", "<strong>wrong</strong>", "12.5 [99.0, 101.0]", "truth: failed",
                  "<td>2.00</td><td>4.00</td>", "chase-half", "Last-level caches", 'stamp measured">bare metal',
                  "Everything is as it was."):  # fmt: skip
        assert words in text, words
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert lines[0].endswith("(bare metal)")
    assert "isolation: not isolated" in lines


def test_a_machine_that_is_no_hardware_by_itself_is_stamped(place, monkeypatch):
    facts = page.MachineFacts.model_validate({"virtualisation": {"vm": "kvm"}})
    assert page.platform_of(facts) == "virtual, not bare metal"
    monkeypatch.setattr(page, "platform_here", lambda: "emulated")
    assert page.platform_of(facts) == "emulated, not hardware"


def test_what_could_not_be_unmounted_is_told_and_tried_again(place, diary, whole, tmp_path, monkeypatch):
    """As where a group was left in it, which is removed meanwhile."""
    monkeypatch.setenv("CASTMATES_STATE", str(tmp_path / "state"))
    (knob := tmp_path / "knob").write_text("absent")
    Journal().apply([Change("resctrl mount", "file", str(knob), "absent", "mounted")], "a day")

    class Held:
        def release(self):
            return ["it is busy."]

    monkeypatch.setattr(day, "lease", lambda **_: Held())
    with day._mounted(diary):
        assert knob.read_text().strip() == "mounted"
    day.close(whole, diary, day.settings(), print)
    assert knob.read_text().strip() == "absent"
    assert diary.restored.startswith("it is busy. ")


def test_a_dry_run_plans_with_resctrl_mounted_and_the_clock_begins_before_the_plan(place, tmp_path, monkeypatch):
    now, said = [0.0], []
    monkeypatch.setattr(day, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(day, "restore_everything", Restored)
    monkeypatch.setattr(day, "close", lambda *_: None)
    monkeypatch.setattr(day, "settings_before", lambda _: {})

    @contextmanager
    def mounted(_):
        said.append("mounted")
        yield
        said.append("unmounted")

    def planned(*_):
        said.append("planned")
        now[0] += 100
        return [Days().step("one")]

    monkeypatch.setattr(day, "_mounted", mounted)
    monkeypatch.setattr(day, "_planned", planned)
    monkeypatch.setattr(day, "follow_all", lambda *given: said.append(given[2]))
    assert day.spend(tmp_path / "new", 90, True, print)
    assert said == ["mounted", "planned", "unmounted"]
    assert not (tmp_path / "new").exists()
    day.spend(tmp_path / "new", 90, False, print)
    assert said[3:] == ["mounted", "planned", 90 * 60 - 100, "unmounted"]


def test_what_ends_a_step_is_counted_in_its_time():
    longest = sum(patience for _, patience in steps.ESCALATION)
    assert min(day.CLOSING_S - longest, sweep.CLOSING_S - longest - sweep.TABLES_S) >= 0


def test_settings_that_are_not_as_before_are_named(monkeypatch):
    before = {"sys/fs/resctrl/schemata": "L3:0=fff\n", "sys/a": "1", "sys/b": "1"}
    assert day.compared(before, dict(before)) == (
        "Everything is as it was before: groups and masks of resctrl, and 3 settings."
    )
    after = {"sys/fs/resctrl/schemata": "L3:0=f\n", "sys/a": "2", "sys/c": "1"}
    assert day.compared(before, after) == "Not as before, whoever changed it: /sys/a, /sys/b, /sys/c and 1 more."


def test_the_settings_of_a_day_that_was_killed_are_those_of_its_begin(place, monkeypatch):
    monkeypatch.setattr(day, "settings", lambda: {"sys/a": "1"})
    assert day.settings_before(place) == {"sys/a": "1"}
    monkeypatch.setattr(day, "settings", lambda: {"sys/a": "2"})
    assert day.settings_before(place) == {"sys/a": "1"}
    monkeypatch.setattr(day, "boot_id", lambda: "another")
    assert day.settings_before(place) == {"sys/a": "2"}


def test_a_trial_that_ends_with_a_bad_verdict_has_a_result(place, monkeypatch):
    ends = [Ended(1, '{"verdict": "wrong"}', "it is off."), Ended(1, "", "two cores."), Ended(None, "{}", "time.")]
    monkeypatch.setattr(doctor, "bounded", lambda *_, **__: ends.pop(0))
    assert [doctor.truth(1)(place, 60, print) for _ in range(3)] == ["", "two cores.", "time."]
    assert json.loads(place.record_file("truth").read_text()) == {"verdict": "wrong"}


def test_a_step_ends_at_the_first_signal_also_where_that_is_ignored_here(place, monkeypatch):
    """As under `nohup ... &`."""
    monkeypatch.setattr(steps, "ESCALATION", ((signal.SIGINT, 20.0), (signal.SIGKILL, 5.0)))
    codes, end = [], steps.end
    monkeypatch.setattr(steps, "end", lambda child: (end(child), codes.append(child.returncode)))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = steps.bounded(["doctor"], place.log_file("doctor"), 0, lambda _: None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.code is None
    assert codes[0] not in (0, -signal.SIGKILL)
