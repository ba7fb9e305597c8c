"""The page of benchmarks: from kept runs alone, with repetitions side by side, whatever was killed or is missing."""

import re
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from benchmarks import all as everything
from benchmarks import page, runs, sweeps
from benchmarks.commands import COMMANDS, Command
from benchmarks.common import Report
from benchmarks.machine import ROOT, Moment, machine
from benchmarks.runs import Run
from benchmarks.verdicts import Aim, Finding
from castmates.analysis.effects.effects import estimate_effects
from castmates.errors import CastmatesError
from castmates.results.plans import read_plan
from castmates.study.spec import PROTOCOL
from tests.unit.snapshots import assert_as_before

BEGUN = datetime(2026, 11, 22, 17, 0, tzinfo=timezone(timedelta(hours=1)))
GAP, DIAL, SHARE = (
    Command("restart_gap", "restart_gap", 1.0),
    Command("dial", "dial --minutes 3", 3.0),
    Command("share", "share --minutes 3", 3.0, hours=3),
)


def finding(value=1.0, low=0.5, high=1.5, what="a loss", most=2.0):
    return Finding(what=what, value=value, unit="%", low=low, high=high, count=5, of="launches", aim=Aim(most=most))


def run_of(ran, *findings, hour=0, code="now", **changes):
    known = {
        "title": f"What {ran.name.split('_')[-1]} gives", "command": ran.line, "begun": BEGUN + timedelta(hours=hour),
        "minutes": 1.5, "commit": f"commit abc{hour}", "protocol": PROTOCOL, "machine": "a processor (avx2)", "cpus": 2,
        "load": (0.1, 0.2), "steal": 0.01, "findings": findings or (finding(),),
        "section": ("", f"Text of hour {hour}."), "code": code,
    }  # fmt: skip
    return Run(**(known | changes))


def section_of(text, title):
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def code(monkeypatch):
    monkeypatch.setattr(everything, "code_of", lambda _: "now")


def test_a_claim_stands_when_every_repetition_shows_it():
    """The newest run in full, all of them beside each other; what was run otherwise is no repetition."""
    bare = Finding(what="bare", value=3.0, unit="s", count=1, of="launches", aim=Aim(most=9))
    aimless = Finding(what="aimless", value=3.0, unit="s", low=2.0, high=4.0, count=5, of="launches")
    kept = {
        str(highs): [run_of(GAP, finding(high=high), hour=hour) for hour, high in enumerate(highs)]
        for highs in ([1.5, 1.6, 1.7], [1.5, 2.5, 1.7], [2.5, 2.5, 2.5], [1.5])
    }
    kept["no interval, no aim"] = [run_of(GAP, bare, aimless)]
    for changes in ({"command": "python -m benchmarks.restart_gap --seed 2"}, {"protocol": 99}):
        kept[str(changes)] = [run_of(GAP, finding(high=9.0), **changes), run_of(GAP, hour=1)]
    said = {}
    for name, runs_ in kept.items():
        text = page.page({"restart_gap": runs_}, [GAP])
        said[name] = [
            line for part in ("Aims and results", "What gap gives") for line in section_of(text, part).split("\n")
        ]
    said["due"] = section_of(page.page({"share": [run_of(SHARE)]}, [SHARE]), "Aims and results").split("\n")
    said["nothing was measured"] = page.page({}, [GAP, DIAL]).split("\n")
    assert_as_before("benchmark-page", said)


def test_aims_of_a_model_and_of_another_protocol_are_counted_apart():
    kept = {
        "restart_gap": [run_of(GAP)],
        "dial": [run_of(DIAL, finding(what="modelled, pairs"), title="A dial")],
        "share": [run_of(SHARE, finding(high=9.0), protocol=99)],
    }
    aims = section_of(page.page(kept, [GAP, DIAL, SHARE]), "Aims and results")
    real, modelled, earlier = (aims.index(f"### {kind}") for kind in (page.NOW, page.MODELLED, page.EARLIER))
    assert real < modelled < earlier
    assert "**Met**: 1 of 1." in aims[real:modelled]
    assert "**Met**: 1 of 1." in aims[modelled:earlier]
    assert "**Unresolved**: 1 of 1." in aims[earlier:]


def test_another_aim_is_another_claim():
    both = [run_of(GAP, finding(high=3.5, most=3.0)), run_of(GAP, finding(), hour=1)]
    assert [claim.verdicts for claim in page.claims(both)] == [("met",)]


def test_whoever_is_killed_half_way_loses_one_run_and_goes_on_with_it(tmp_path, code):
    started = []

    def start(command):
        started.append(command.name)
        if started == ["restart_gap", "dial"]:
            raise KeyboardInterrupt
        return run_of(command)

    commands, output = [GAP, DIAL, SHARE], tmp_path / "page.md"
    with pytest.raises(KeyboardInterrupt):
        everything.measure(commands, tmp_path, output, start)
    assert "What gap gives" in output.read_text()
    left = everything.due(tmp_path, commands)
    assert [command.name for command in left] == ["dial", "share"]
    assert everything.measure(left, tmp_path, output, start) == []
    assert started == ["restart_gap", "dial", "dial", "share"]
    assert everything.due(tmp_path, commands, now=BEGUN + timedelta(minutes=30)) == []


def test_one_that_fails_costs_the_others_nothing(tmp_path, code):
    def start(command):
        if command is DIAL:
            raise CastmatesError("no")
        return run_of(command)

    assert everything.measure([GAP, DIAL, SHARE], tmp_path, tmp_path / "page.md", start) == ["dial"]
    assert [command.name for command in everything.due(tmp_path, [GAP, DIAL])] == ["dial"]


@pytest.mark.parametrize(
    ("kept", "minutes", "is_due"),
    [
        ([], 0, True),
        ([{"code": "before"}], 0, True),
        ([{"command": "python -m benchmarks.share --minutes 1"}], 0, True),
        ([{}], 30, False),
        ([{}], 61, True),
        ([{}, {"hour": 2}], 150, False),
        ([{}, {"hour": 2}], 190, True),
        ([{}, {"hour": 2}, {"hour": 4}], 600, False),
    ],
)
def test_what_readers_rely_on_is_due_until_it_was_run_in_three_separate_hours(tmp_path, code, kept, minutes, is_due):
    for changes in kept:
        runs.keep(run_of(SHARE, **changes), SHARE.name, tmp_path)
    found = everything.due(tmp_path, [SHARE], BEGUN + timedelta(minutes=minutes))
    assert found == ([SHARE] if is_due else [])


def test_a_run_is_read_as_it_was_kept_and_a_broken_one_is_named(tmp_path):
    one = run_of(GAP, finding(), finding(low=None, high=None))
    runs.keep(one, "gap", tmp_path)
    assert runs.kept("gap", tmp_path) == [one]
    (tmp_path / "gap/2026-11-23T000000.json").write_text("{")
    with pytest.raises(CastmatesError, match=r"2026-11-23T000000\.json: no run of a benchmark can be read here"):
        runs.kept("gap", tmp_path)


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("benchmarks/gap.py", True),
        ("benchmarks/gap.c", True),
        ("benchmarks/helper.py", True),
        ("benchmarks/in_a_process.py", True),
        ("benchmarks/other.py", False),
        ("castmates/runner.py", True),
        ("config/README.md", False),
        ("docs/benchmarks.md", False),
        ("benchmarks/runs/gap/1.json", False),
    ],
)
def test_a_run_is_outdated_when_what_it_ran_was_changed(tmp_path, file, stale):
    texts = {
        "benchmarks/gap.py": 'from benchmarks import helper\nprogram = "in_a_process.py"\n',
        "benchmarks/helper.py": "import benchmarks.gap\n",
        **dict.fromkeys(["benchmarks/gap.c", "benchmarks/in_a_process.py", "benchmarks/other.py"], "1"),
        **dict.fromkeys(["castmates/runner.py", "config/README.md", "docs/benchmarks.md"], "1"),
        "benchmarks/runs/gap/1.json": "{}",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = runs.code_of("gap", tmp_path)
    (tmp_path / file).write_text(texts[file] + "\n# changed")
    assert (runs.code_of("gap", tmp_path) != before) == stale


def test_the_head_names_command_commit_flags_load_and_what_the_hypervisor_took(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(runs.VARIABLE, str(tmp_path / "run.json"))
    monkeypatch.setattr("sys.argv", ["gap", "--minutes", "2"])
    report = Report("A title", "restart_gap")
    report.found(finding())
    report.print()
    head = capsys.readouterr().out.splitlines()[2]
    assert head.startswith("`python -m benchmarks.restart_gap --minutes 2`, ")
    assert re.search(r"; load average \d+\.\d before and \d+\.\d after, on \d+ CPUs; taken by the hypervisor", head)
    written = runs.read(tmp_path / "run.json")
    assert (written.title, written.findings, written.commit[:7]) == ("A title", (finding(),), "commit ")


def test_the_machine_has_the_flags_that_matter_and_steal_is_a_share_of_all_time(tmp_path):
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.18\n")
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: A\nflags\t\t: sse avx2 amx_tile hypervisor\n")
    assert machine(tmp_path).startswith("A (avx2, amx, hypervisor), ")
    assert machine(tmp_path).endswith("Linux 6.18, virtual (a hypervisor)")
    earlier, later = Moment(0.0, (10, 0, 0, 0, 0, 0, 0, 2)), Moment(0.0, (60, 0, 0, 40, 0, 0, 0, 12))
    assert earlier.stolen_until(later) == pytest.approx(0.1)


def test_every_benchmark_is_on_the_page_and_every_command_is_one():
    modules = {file.stem for file in (ROOT / "benchmarks").glob("*.py") if " = Report(" in file.read_text()}
    assert {command.module for command in COMMANDS} == modules
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)


def test_the_page_is_what_the_kept_runs_give():
    """Nobody writes on it by hand: `python -m benchmarks.page` renews it."""
    kept = {command.name: runs.kept(command.name) for command in COMMANDS}
    assert page.PAGE.read_text() == page.page(kept, swept=sweeps.kept())


@pytest.mark.parametrize("folder", sorted(sweeps.PLACE.glob("*")), ids=lambda folder: folder.name)
def test_what_is_kept_of_a_sweep_gives_its_losses_again(folder):
    plan, windows = read_plan(folder / sweeps.PLAN), pd.read_parquet(folder / "windows.parquet")
    margin = sweeps.About.model_validate_json((folder / sweeps.ABOUT).read_text()).margin
    kept = pd.read_csv(folder / "effects.csv")
    columns = ["slowdown", "slowdown_low", "slowdown_high"]
    found = estimate_effects(plan, windows, margin)[columns].to_numpy()
    assert found == pytest.approx(kept[columns].to_numpy(), rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("file", sorted(runs.FOLDER.glob("truth-*/*.windows.parquet")), ids=lambda file: file.name[:17])
def test_the_raw_windows_of_known_losses_give_their_biases_again(file):
    """By plain sums, and none of our estimators."""
    run, windows = runs.read(file.with_name(file.name.replace("windows.parquet", "json"))), pd.read_parquet(file)
    lead = windows[(windows["role"] == "lead") & windows["valid"] & windows["rate"].gt(0)]
    lead = lead.assign(scene=lead["scene"].replace("alone-again", "alone"), log=np.log(lead["rate"]) * lead["open_s"])
    sums = lead.groupby(["launch", "round", "scene"], observed=True)[["log", "open_s"]].sum()
    logs = (sums["log"] / sums["open_s"]).unstack("scene")
    coruns = logs.filter(like="corun:")
    losses = coruns.rsub(logs["alone"], axis=0).groupby("launch").mean().dropna()
    if "sleeper" not in coruns.columns[0]:  # what the neighbour takes by itself is taken away
        (own,) = (name for name in losses if name.endswith("-0"))
        losses = losses.sub(losses[own], axis=0).drop(columns=own)
    found = 100 * -np.expm1(-losses.mean())
    known = found.index.str.extract(r"-([\d.]+)$")[0].astype(float).to_numpy()
    biases = {one.what.rpartition(" at ")[2]: one.value for one in run.findings if ": bias at " in one.what}
    assert biases == pytest.approx({f"{loss:g} %": value - loss for loss, value in zip(known, found, strict=True)})


def test_what_is_no_sweep_is_not_kept(tmp_path):
    with pytest.raises(CastmatesError, match="not the results of a sweep that is done"):
        sweeps.keep(tmp_path, 0.03, tmp_path / "kept")
    assert sweeps.kept(tmp_path / "kept") == []
    assert sweeps.section([]) == []
