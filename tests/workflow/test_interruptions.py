"""However a sweep is ended, the same command goes on and comes to the same tables."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pandas as pd
import psutil
import pytest

from castmates.results.plans import read_plan
from castmates.study.schedule import Orders, stretches
from tests.waiting import PATIENCE, wait_for
from tests.workflow.sweeps import STUDY, TABLES, Sweeps

LONGER = {"budget": STUDY["budget"] | {"launches": 4}}
KEYS = ["cohort", "launch", "round", "scene", "member"]


def expected_rows(sweeps: Sweeps) -> list[tuple]:
    """Which windows the plan asks for: no measured figures, but every cohort, launch, round, scene and member."""
    return sorted(
        (launch.cohort.id, launch.number, round_, scene.name, member)
        for launch in read_plan(sweeps.results / "plan.json").launches
        for round_ in range(1, launch.design.rounds + 1)
        for scene in launch.cohort.scenes
        for member in scene.active
    )


def rows(sweeps: Sweeps) -> list[tuple]:
    return sorted(pd.read_parquet(sweeps.results / "tables/windows.parquet")[KEYS].itertuples(index=False, name=None))


def expected_order(sweeps: Sweeps) -> dict[tuple, list[str]]:
    """In which order the seeds have the scenes of each launch begin; later orders depend on how many came before."""
    return {
        (launch.cohort.id, launch.number): [
            scene.name for part in stretches(launch, 1) for cycle in Orders().draw(part, 1) for scene in cycle
        ]
        for launch in read_plan(sweeps.results / "plan.json").launches
    }


def order(sweeps: Sweeps) -> dict[tuple, list[str]]:
    windows = pd.read_parquet(sweeps.results / "tables/windows.parquet")
    windows = windows[windows["round"] == 1].drop_duplicates(["cohort", "launch", "window"]).sort_values("position")
    return {place: own["scene"].tolist() for place, own in windows.groupby(["cohort", "launch"])}


def processes_of(sweeps: Sweeps) -> list[psutil.Process]:
    """Everything that works in this project's folder."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.cwd().startswith(str(sweeps.folder)) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found


def wait_until_nobody_is_left(sweeps: Sweeps) -> None:
    wait_for(
        lambda: not processes_of(sweeps), "nobody is left", lambda: [one.cmdline() for one in processes_of(sweeps)]
    )


def words_of_new_launches(sweeps: Sweeps, known: set[Path]) -> str:
    """What the launches that were begun since have written."""
    return "".join(file.read_text() for file, _ in sweeps.logs() if file not in known)


@pytest.fixture
def started(project):
    """A longer sweep at work, the launch logs that were there before it, and nobody left afterwards."""
    project.write_study(LONGER)
    known = {file for file, _ in project.logs()}
    sweep = project.start(TABLES)
    try:
        yield sweep, known
    finally:
        with suppress(ProcessLookupError):
            os.killpg(sweep.pid, signal.SIGKILL)  # where the test has failed
        sweep.communicate()


# Ctrl-C while a launch's programs start; SIGTERM, to Snakemake alone, in the midst of its rounds. The chaos test kills.
@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("launching", signal.SIGINT),
        ("round 1:", signal.SIGTERM),
    ],
)
def test_a_sweep_that_was_ended_goes_on(project, started, moment, number):
    before = project.launches()
    sweep, known = started
    wait_for(lambda: moment in words_of_new_launches(project, known), f"a launch is at '{moment}'")
    if number == signal.SIGINT:
        os.killpg(sweep.pid, number)  # as a terminal does it
    else:
        sweep.send_signal(number)
    said = sweep.communicate(timeout=PATIENCE)[0]
    assert sweep.returncode != 0
    assert "Traceback" not in said
    wait_until_nobody_is_left(project)
    kept = project.launches()
    project.sweep(TABLES)
    after = project.launches()
    assert len(after) == 4
    assert {launch: after[launch] for launch in before | kept} == before | kept
    assert rows(project) == expected_rows(project)
    assert order(project) == expected_order(project)
    project.assert_finished(TABLES)


def test_a_launch_is_kept_though_snakemake_did_not_live_to_see_it_end(project, started):
    before = project.launches()
    sweep, _ = started
    wait_for(lambda: set(project.launches()) > set(before), "a launch is measured")
    sweep.kill()
    sweep.communicate(timeout=PATIENCE)
    wait_until_nobody_is_left(project)
    kept = project.launches()
    assert len(kept) > len(before)
    project.sweep(TABLES)
    after = project.launches()
    assert len(after) == 4
    assert {launch: after[launch] for launch in kept} == kept


def test_a_second_sweep_over_the_same_results_is_refused_in_a_sentence(project, started):
    sweep, _ = started
    lock = project.results / ".sweep.lock"
    wait_for(lambda: lock.read_text().strip() == str(sweep.pid), "the sweep holds its lock")
    second = project.run(TABLES)
    assert second.returncode != 0
    _, sentence = second.stderr.splitlines()
    assert sentence.startswith("castmates: another sweep")
    os.killpg(sweep.pid, signal.SIGINT)
    sweep.communicate(timeout=PATIENCE)
    wait_until_nobody_is_left(project)
