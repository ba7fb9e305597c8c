"""The example of a plug-in, installed beside the framework: a sweep uses what it adds; a broken one is one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from castmates.report.results import read_results
from tests.workflow.sweeps import ROOT, STUDY, Sweeps

EXAMPLE = ROOT / "examples" / "plugin"
METRIC = '[project.entry-points."castmates.metrics"]\nbroken = "castmates_broken:metric"\n'


class WithPlugin(Sweeps):
    """A folder with a study, and a folder of packages that Python finds beside the framework's."""

    packages: Path

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PYTHONPATH": str(self.packages)}


def install(project: Path, packages: Path) -> None:
    """Build its wheel and unpack it as any installer does; nothing is fetched."""
    wheels = packages / "wheels"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    subprocess.run(build, cwd=project, check=True, capture_output=True)
    uv = str(Path(sys.executable).with_name("uv"))
    words = [uv, "pip", "install", "--offline", "--no-deps", "--quiet", "--python", sys.executable]
    subprocess.run([*words, "--target", str(packages), *map(str, wheels.glob("*.whl"))], check=True)


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "mine").mkdir()
    one = WithPlugin(folder / "mine", folder / "cache")
    one.packages = folder / "packages"
    install(EXAMPLE, one.packages)
    text = yaml.safe_dump(STUDY | {"platform": "modelled"})
    (one.folder / "study.yaml").write_text(text)
    return one


CHOSEN = ("--snakefile", str(ROOT / "workflow/Snakefile"), "--config", "study=study.yaml")


def test_figure_and_metric_are_on_the_page_and_in_the_tables(sweeps):
    sweeps.sweep(*CHOSEN)
    system = pd.read_csv(sweeps.results / "tables/system.csv").set_index("metric")["value"]
    assert list(system.index)[-1] == "least progress"
    assert system["least progress"] == pytest.approx(1 / system["max slowdown"])
    assert (sweeps.results / "figures/launches.svg").stat().st_size > 0
    page = (sweeps.results / "report/index.html").read_text()
    for words in ("From launch to launch", "A ring is a launch", "least progress", "castmates-example"):
        assert words in page, words
    record = sweeps.record(next(iter(sweeps.launches())))
    assert record["versions"]["castmates-example"] == "0.1.0"
    sweeps.assert_finished(*CHOSEN)


def test_without_the_package_its_metric_is_still_read(sweeps):
    if not sweeps.launches():
        sweeps.sweep(*CHOSEN)
    assert "least progress" in set(read_results(sweeps.results).system["metric"])


def test_the_doctor_lists_what_is_added(sweeps):
    shown = sweeps.castmates("doctor", "--format", "json")
    for words in (
        "figure 'launches'",
        "metric 'least progress'",
        "collector 'load-average'",
        "suite 'shell'",
        "allocator 'agent'",
    ):
        assert f"{words} of the package castmates-example 0.1.0" in shown


def test_a_suite_of_a_plugin_makes_workloads(sweeps):
    (sweeps.folder / "workloads").mkdir(exist_ok=True)
    file = sweeps.folder / "workloads/shell.yaml"
    file.write_text(yaml.safe_dump({"suites": {"shell": {"commands": {"list": "ls /"}}}}))
    try:
        assert "shell.list" in sweeps.castmates("workloads", "--format", "json", "--catalogue", "workloads")
        file.write_text(yaml.safe_dump({"suites": {"shell": {}}}))
        done = sweeps.run(*CHOSEN, "--dry-run")
        assert "'suites.shell': expected one key, 'commands'" in done.stdout + done.stderr
    finally:
        file.unlink()


def test_a_broken_plugin_is_one_sentence(sweeps, tmp_path):
    broken = tmp_path / "broken"
    (broken / "castmates_broken").mkdir(parents=True)
    (broken / "castmates_broken/__init__.py").write_text("import no_such_module\n")
    text = (EXAMPLE / "pyproject.toml").read_text().partition("[project.entry-points")[0]
    (broken / "pyproject.toml").write_text(text.replace("-example", "-broken") + METRIC.replace("metrics", "figures"))
    install(broken, tmp_path / "packages")
    other = WithPlugin(sweeps.folder, sweeps.cache)
    other.packages = Path(os.pathsep.join([str(tmp_path / "packages"), str(sweeps.packages)]))
    done = other.run(*CHOSEN, "--dry-run")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "the figure 'broken' of the package castmates-broken 0.1.0 cannot be loaded: ModuleNotFoundError" in said
    assert "Fix that package, or uninstall it." in said
    assert "Traceback" not in said
    assert "cannot be loaded" in other.castmates("doctor", "--format", "json")
