"""The examples of docs/api.md and examples/ run over a study that was swept: pandas, a notebook, DuckDB."""

import re
import subprocess
import sys

import pytest

from tests.workflow.sweeps import ROOT

PAGE = ROOT / "docs" / "api.md"


def launches_of(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def test_the_page_shows_what_runs(modelled):
    """Every launch of Python on the page, one after the other, in the folder of a study."""
    program = "\n".join(launches_of("python")).replace("results/first-look", "results/small")
    assert "castmates.load" in program
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=modelled.folder,
        env=modelled.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "loss_high verdict" in done.stdout


@pytest.mark.needs("duckdb")
def test_duckdb_reads_the_tables(modelled):
    import duckdb

    (query,) = re.findall(r'duckdb -c "(.*?)"', PAGE.read_text(), flags=re.DOTALL)
    query = query.replace("results/", f"{modelled.folder}/results/")
    rows = duckdb.sql(query).df()
    assert set(rows["study"]) == {"small"}
    assert len(rows)


@pytest.mark.needs("nbclient", "ipykernel")
def test_the_notebook_runs(modelled, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    for name, value in (modelled.environment() | {"STUDY": "results/small", "MPLBACKEND": "agg"}).items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(ROOT / "examples/results.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without its outputs"
    resources = {"metadata": {"path": str(modelled.folder)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/svg+xml" in output.get("data", {}) for output in shown), "a figure of the report shows itself"
