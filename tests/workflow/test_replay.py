"""`castmates sweep --replay`: whole studies are published, measured again elsewhere, and compared."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest

from castmates.report.comparison.replay import ALL_AGREE, SOME_DIFFER, UNDECIDED
from tests.waiting import PATIENCE, wait_for
from tests.workflow.sweeps import Sweeps

LONGEST = 300  # seconds of one command, on a machine that does other things too
MARGIN = ("--margin", "50%")  # three launches of two rounds show no less


def replay(sweeps: Sweeps, *words: object) -> subprocess.Popen[str]:
    """A replay at work, in a session of its own as a terminal has it."""
    return subprocess.Popen(
        [sys.executable, "-m", "castmates", "sweep", "--replay", *map(str, words), "--cores", "2"],
        cwd=sweeps.folder,
        env=sweeps.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def replayed(sweeps: Sweeps, *words: object) -> tuple[int, str, str]:
    """A replay to its end: status, output, and what it wrote to standard error."""
    working = replay(sweeps, *words)
    out, errors = working.communicate(timeout=LONGEST)
    return working.returncode, out, errors


def doctored(crate: Path, target: Path, change) -> Path:
    """A copy of the crate in which the table of windows is another one, as if it had been published so."""
    shutil.copytree(crate, target)
    file = target / "data/windows.parquet"
    change(pd.read_parquet(file)).to_parquet(file, index=False)
    described = json.loads((target / "ro-crate-metadata.json").read_text())
    for each in described["@graph"]:
        if each["@id"] == "data/windows.parquet":
            each["sha256"] = sha256(file.read_bytes()).hexdigest()
    (target / "ro-crate-metadata.json").write_text(json.dumps(described))
    return target


def launches(sweeps: Sweeps, name: str) -> dict[str, int]:
    found = (sweeps.folder / "results" / name).glob("launches/*/*/launch.json")
    return {str(one.relative_to(sweeps.folder)): one.stat().st_mtime_ns for one in found}


@pytest.fixture(scope="module")
def crate(modelled, tmp_path_factory):
    """The modelled study, published."""
    place = tmp_path_factory.mktemp("published") / "crate"
    modelled.castmates("paper", "config/config.yaml", "--output", str(place))
    return place


@pytest.fixture
def elsewhere(tmp_path):
    """An empty folder of somebody else, outside of any clone."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    return Sweeps(folder, tmp_path / "cache")


@pytest.mark.nightly
def test_a_published_study_that_was_interrupted_agrees_and_a_doctored_one_differs(crate, elsewhere, tmp_path):
    copied = Path(shutil.copytree(crate, tmp_path / "copied"))
    working = replay(elsewhere, copied, *MARGIN)
    try:
        wait_for(lambda: launches(elsewhere, "small-replay"), "a launch is measured")
        working.send_signal(signal.SIGINT)
        working.communicate(timeout=PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(working.pid, signal.SIGKILL)
    assert working.returncode == 128 + signal.SIGINT
    kept = launches(elsewhere, "small-replay")
    assert not (elsewhere.folder / "results/small-replay/replay/index.html").exists()

    status, out, errors = replayed(elsewhere, copied, *MARGIN)
    assert status == ALL_AGREE, out + errors
    after = launches(elsewhere, "small-replay")
    assert len(after) == 3
    assert {name: after[name] for name in kept} == kept, "nothing is measured twice"
    assert "MODELLED (NOT MEASURED)" in out
    assert "effects agree with what was published, within 50 %." in out
    assert "ANOTHER CLASS" not in out
    made = elsewhere.folder / "results/small-replay/replay"
    table = pd.read_csv(made / "replay.csv")
    assert set(table["verdict"]) == {"agrees"}
    assert set(table["partition"]) == {"unmanaged", "split-4", "split-10", "lead-4"}
    published = pd.read_csv(crate / "data/effects.csv")
    assert len(table) == len(published)
    assert sorted(table["published_slowdown"]) == pytest.approx(sorted(published["slowdown"]), rel=1e-6)
    page = (made / "index.html").read_text()
    assert "modelled (not measured)" in page
    assert "Published: small" in page

    def slower(windows):
        hit = (windows["kind"] == "corun") & (windows["role"] == "lead") & (windows["partition"] == "unmanaged")
        return windows.assign(rate=windows["rate"].where(~hit, windows["rate"] / 4))

    other = doctored(crate, tmp_path / "doctored", slower)
    status, out, errors = replayed(elsewhere, other, *MARGIN)
    assert status == SOME_DIFFER, out + errors
    assert launches(elsewhere, "small-replay") == after
    assert "chase beside stream: loss of " in out
    assert "one of them is not what was measured" in out, "the published table of effects is that of the real windows"
    table = pd.read_csv(made / "replay.csv")
    assert set(table.loc[table["verdict"] == "differs", "mix"]) == {"chase+stream"}
    assert table.loc[table["verdict"] == "differs", "joint_slowdown"].isna().all()


@pytest.mark.nightly
def test_a_launch_of_real_kernels_is_measured_again_and_too_few_launches_decide_nothing(finished, elsewhere):
    """From the results folder of another project, whose kernels are built there."""
    project = finished.copy(elsewhere.folder / "project")
    (launch,) = (place for place in project.results.glob("launches/*/1"))
    status, out, errors = replayed(project, launch, "--launches", "3", "--format", "json")
    assert status == UNDECIDED, out + errors
    found = json.loads(out)
    assert found["origin"] == found["stamp"] == ""
    assert {row["verdict"] for row in found["rows"]} == {"too few launches"}, "two launches were published"
    assert {row["here_launches"] for row in found["rows"]} == {3}
    assert {row["platform_here"] for row in found["rows"]} == {"measured"}
    assert all(row["here_slowdown_low"] < row["here_slowdown"] for row in found["rows"])
