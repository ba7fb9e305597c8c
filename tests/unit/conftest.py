"""What unit tests share."""

import fcntl
from pathlib import Path

import pytest

from castmates.report.figures.drawing import draw_figure
from castmates.report.figures.index import FIGURES
from castmates.report.results import read_results
from tests.unit.results_maker import make

STUDY = """\
name: study
title: A <script>alert(1)</script> & study
question: What is lost?
leads: [dlrm-train]
antagonists: [stream]
margin: 3%
seed: 41
"""


@pytest.fixture(scope="session")
def drawn_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a study with all its figures drawn, once for all workers: for reading only."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base  # workers have folders in a common one
    folder = shared / "drawn" / "study"
    with (shared / "drawn.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "study.yaml").exists():
            folder.parent.mkdir()
            make(folder)
            results = read_results(folder)
            for figure in FIGURES:
                draw_figure(figure, results, folder / "figures" / figure)
            (folder / "study.yaml").write_text(STUDY)
    return folder
