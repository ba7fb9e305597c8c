"""However a sweep is ended, the same command goes on and comes to the same tables."""

import os
import random
import signal
import time

import pandas as pd
import psutil
import pytest

from tests.workflow.sweeps import STUDY, Sweeps

LONGER = {"budget": STUDY["budget"] | {"blocks": 5}}
KEYS = ["company", "block", "round", "position", "scene", "member"]


def expected_rows(sweeps: Sweeps) -> list[tuple]:
    """Which windows the plan asks for: no measured figures, but every company, seed and random order."""
    from castmates.results.plans import read_plan
    from castmates.study.schedule import round_order

    return sorted(
        (block.company.id, block.number, round_, position, scene.name, member)
        for block in read_plan(sweeps.results / "plan.json").blocks
        for round_ in range(1, block.design.rounds + 1)
        for position, scene in enumerate(round_order(block, round_), start=1)
        for member in scene.active
    )


def rows(sweeps: Sweeps) -> list[tuple]:
    return sorted(pd.read_parquet(sweeps.results / "tables/windows.parquet")[KEYS].itertuples(index=False, name=None))


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
    for _ in range(200):
        if not processes_of(sweeps):
            return
        time.sleep(0.1)
    raise AssertionError(f"still running: {[one.cmdline() for one in processes_of(sweeps)]}")


def await_first_block(sweeps: Sweeps) -> None:
    """Wait until the sweep measures: before that it reads its files, for longer on a busy machine."""
    known = {*sweeps.logs()}
    for _ in range(1000):
        if {*sweeps.logs()} - known:
            return
        time.sleep(0.1)
    raise AssertionError("no block was begun")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])  # the chaos test kills
def test_a_sweep_that_was_ended_goes_on(project, number):
    before = project.blocks()
    project.write_study(LONGER)
    sweep = project.start()
    await_first_block(project)
    time.sleep(random.Random(int(number)).uniform(0, 3))  # somewhere in the blocks
    if number == signal.SIGINT:
        os.killpg(sweep.pid, number)  # as a terminal does it
    else:
        sweep.send_signal(number)
    said = sweep.communicate(timeout=60)[0]
    assert sweep.returncode != 0
    assert "Traceback" not in said
    wait_until_nobody_is_left(project)
    kept = project.blocks()
    done = project.run()
    assert done.returncode == 0, done.stderr
    after = project.blocks()
    assert len(after) == 5
    assert {block: after[block] for block in before | kept} == before | kept
    assert rows(project) == expected_rows(project)
    assert "Nothing to be done" in project.run("--dry-run").stdout


def test_a_block_is_kept_though_snakemake_did_not_live_to_see_it_end(project):
    project.write_study(LONGER)
    before = project.blocks()
    sweep = project.start()
    for _ in range(100_000):  # a block may wait for the machine
        if set(project.blocks()) > set(before):
            break
        time.sleep(0.001)
    sweep.kill()
    sweep.communicate(timeout=60)
    wait_until_nobody_is_left(project)
    kept = project.blocks()
    assert len(kept) > len(before)
    assert project.run().returncode == 0
    after = project.blocks()
    assert len(after) == 5
    assert {block: after[block] for block in kept} == kept


def test_a_second_sweep_over_the_same_results_is_refused_in_a_sentence(project):
    project.write_study(LONGER)
    sweep = project.start()
    try:
        for _ in range(100):
            if (project.results / ".sweep.lock").read_text().strip() == str(sweep.pid):
                break
            time.sleep(0.1)
        second = project.run()
        assert second.returncode != 0
        assert "another sweep" in second.stderr
        assert "Traceback" not in second.stderr
    finally:
        os.killpg(sweep.pid, signal.SIGINT)
        sweep.communicate(timeout=60)
    wait_until_nobody_is_left(project)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"placement": {"antagonists": "1,1"}}, "names CPU 1 twice"),
        ({"antagonists": ["straem"]}, "did you mean 'stream'?"),
        ({"antagonist": ["stream"]}, "unknown key 'antagonist'"),
        ({"leads": []}, "nothing to measure"),
        ({"workloads": {"a": {"like": "b"}, "b": {"like": "a"}}}, "goes round in a circle"),
        ({"workloads": {"wide": {"command": "true", "cores": 999}}, "antagonists": ["wide"]}, "999"),
        ({"workloads": {"stream": {"command": "true"}}}, "names must be unique"),
    ],
)
def test_a_mistake_in_the_study_is_one_sentence_and_loses_nothing(project, changes, said):
    before = project.blocks()
    project.write_study(changes)
    done = project.run()
    assert done.returncode != 0
    assert said in done.stderr
    assert "config/config.yaml" in done.stderr
    assert "Traceback" not in done.stderr
    assert project.blocks() == before
