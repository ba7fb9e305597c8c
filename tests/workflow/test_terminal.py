"""What a sweep shows under Snakemake: in a log, on a terminal, at Ctrl-C, with a failed job; modelled studies."""

import json
import re
import sys

import pytest

from tests.waiting import PATIENCE, wait_for
from tests.workflow.conftest import MODELLED
from tests.workflow.sweeps import PROFILE, Sweeps
from tests.workflow.terminals import Terminal

SNAKEMAKES = (
    "Select jobs",
    "jobid",
    "rule ",
    "Finished",
    "steps (",
    "Building DAG",
    "WorkflowError",
    "RuleException",
    "Traceback",
)
PLAN = "results/small/plan.json"  # which a job of a second makes
LAUNCH = re.compile(r"^\d\d:\d\d:\d\d +(\d+)/(\d+)  \S+ \d+/\d+  \d+ windows? kept.*  \d+ s(  about .* left)?$", re.M)


def no_word_of_snakemakes(shown: str) -> bool:
    return not [word for word in SNAKEMAKES if word in shown]


@pytest.mark.core
def test_a_log_has_a_line_for_each_launch_and_then_what_came_out(modelled):
    shown = modelled.shown
    launches = LAUNCH.findall(shown)
    total = len(modelled.launches())
    assert [int(done) for done, _, _ in launches] == list(range(1, total + 1))
    assert {int(of) for _, of, _ in launches} == {total}
    assert no_word_of_snakemakes(shown)
    profile, first, *_, last = shown.splitlines()
    assert profile == PROFILE
    assert re.fullmatch(rf"castmates \S+   small   {total} launches, about \d+ s", first)
    assert last == f" Report {(modelled.results / 'report/index.html').as_uri()}"
    assert f" ✓ measured       {total} launches, " in shown
    answer = (modelled.results / "report/answer.txt").read_text().splitlines()
    assert answer
    assert [f" {line}" if line else "" for line in answer] == shown.splitlines()[-len(answer) - 2 : -2]
    assert len(shown.splitlines()) < total + len(answer) + 15
    assert "\x1b" not in shown


@pytest.mark.core
def test_a_terminal_shows_more_launches_that_were_asked_for_and_they_stay_asked_for(modelled, tmp_path):
    sweeps = modelled.copy(tmp_path / "project")
    before = sweeps.launches()
    words = [sys.executable, "-m", "castmates", "sweep", "--launches", "5"]
    terminal = Terminal(words, sweeps.folder, sweeps.environment())
    assert terminal.wait(PATIENCE * 2) == 0, terminal.text
    shown, added = terminal.text, len(sweeps.launches()) - len(before)
    assert added == 2 * len({launch.rpartition("/")[0] for launch in before})
    assert sweeps.launches().items() > before.items()
    assert f"small   {added} launches more, about " in shown
    assert re.search(rf"Measuring .*━.* \d of {added}   \d+ s, about \d+ s left", shown)
    assert re.search(r"chase beside stream   launch [45] of 5   (starting|round \d of 2|ending)", shown)
    assert f" ✓ measured       {added} launches, " in shown
    assert shown.rstrip().endswith((sweeps.results / "report/index.html").as_uri())
    assert no_word_of_snakemakes(shown)
    assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rfind("\x1b[?25l"), "the cursor is there again"
    assert json.loads((sweeps.results / "asked.json").read_text()) == {"launches": 5, "looks": [3]}
    assert "Launches were added after a look at the results with 3 launches" in " ".join(shown.split())
    again = sweeps.run()
    assert "nothing is left to do" in again.stderr
    assert " Report file://" in again.stderr
    refused = sweeps.run("--config", "launches=2")
    assert refused.stderr.removeprefix(f"{PROFILE}\n") == (
        "castmates: launches=2: expected a whole number of launches from 3, which config/config.yaml has, to 10000.\n"
    )


def test_ctrl_c_in_a_terminal_ends_a_sweep_in_a_sentence(tmp_path):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    sweeps.write_study(MODELLED | {"budget": MODELLED["budget"] | {"rounds": 900}})
    terminal = Terminal(["snakemake", "--cores", "all"], sweeps.folder, sweeps.environment())
    wait_for(lambda: "round 2 of 900" in terminal.text, "a launch is in its second round", lambda: terminal.text)
    terminal.press("\x03")
    assert terminal.wait(PATIENCE) != 0
    shown = terminal.text
    assert "The sweep did not finish; the same command goes on where it stopped." in shown
    assert "failed" not in shown
    assert no_word_of_snakemakes(shown)
    assert not sweeps.launches()


def test_a_failed_job_shows_its_log(modelled, tmp_path):
    sweeps = modelled.copy(tmp_path / "project")
    next(sweeps.results.glob("bundles/*/windows.parquet")).write_text("no table")
    (sweeps.results / "tables/effects.parquet").unlink()
    done = sweeps.run()
    assert done.returncode != 0
    assert re.search(r"^ ✗ failed +writing the report\n(     .+\n)+     logs/analyse/small\.log$", done.stderr, re.M)
    assert done.stderr.rstrip().endswith("The sweep did not finish; the same command goes on where it stopped.")
    assert no_word_of_snakemakes(done.stderr)
    assert len(done.stderr.splitlines()) < 15


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dry-run"], "Nothing to be done"),
        (["--summary"], "output_file"),
        (["--list-rules"], "analyse"),
        (["--unlock"], ""),
        (["--rulegraph"], "digraph"),
        (["--quiet", "all"], ""),
        (["--force", PLAN, "--quiet"], " Report file://"),
        (["--force", PLAN, "--verbose"], "Finished jobid"),
    ],
)
def test_other_commands_of_snakemakes_stay_as_they_are(modelled, tmp_path, arguments, said):
    project = modelled.copy(tmp_path / "project") if PLAN in arguments else modelled
    done = project.run(*arguments)
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    assert said in shown
    assert "Traceback" not in shown
    assert said or not shown.replace(PROFILE, "").replace("Unlocked working directory.", "").strip()


def test_a_clone_runs_where_the_plugin_is_not_installed(modelled, tmp_path):
    """As with Snakemake from elsewhere: its own messages, and the answer at the end."""
    code = "import pkgutil as p, sys; had = p.iter_modules; p.iter_modules = lambda *a: " \
        "[m for m in had(*a) if 'castmates' not in m.name]; from snakemake.cli import main; main()"  # fmt: skip
    done = modelled.copy(tmp_path / "project")._call("python", "-c", code, "--force", PLAN)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 steps" in done.stderr
    assert " Report file://" in done.stderr


def test_the_study_of_the_demo_is_small(tmp_path):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    counted = sweeps.run("--dry-run", "--quiet", "rules", "--config", "study=config/studies/demo.yaml").stdout
    assert int(re.search(r"^model_launch +(\d+)$", counted, re.M)[1]) <= 15
    assert "build_environment" not in counted
