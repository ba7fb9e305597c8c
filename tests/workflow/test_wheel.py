"""A wheel, built here and installed in an empty environment elsewhere, has all of the package and measures a study."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import MODELLED
from tests.workflow.sweeps import ROOT, STUDY, Sweeps


class Installed(Sweeps):
    """A folder with a study and nothing else, and an environment that has the package from a wheel."""

    interpreter: Path

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        path = os.pathsep.join([str(self.interpreter.parent), os.defpath])
        return kept | {"PATH": path, "CASTMATES_CACHE": str(self.cache)}

    def print(self, program: str) -> str:
        done = self._call(str(self.interpreter), "-c", program)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def call(*words: str | Path) -> None:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder)
    (built,) = folder.glob("castmates-*-py3-none-any.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Nothing but the wheel and its locked dependencies; uv takes what it has had before from its cache."""
    folder = tmp_path_factory.mktemp("installed")
    uv, python = Path(sys.executable).with_name("uv"), folder / "environment/bin/python"
    call(uv, "venv", "--quiet", "--python", sys.executable, folder / "environment")
    install = (uv, "pip", "install", "--quiet", "--python", python)
    call(*install, "--require-hashes", "-r", ROOT / "envs/castmates.lock")
    call(*install, "--no-deps", wheel)
    (folder / "empty").mkdir()
    sweeps = Installed(folder / "empty", folder / "cache")
    sweeps.interpreter = python
    return sweeps


def test_the_wheel_has_every_file_of_the_package_and_of_the_workflow_and_no_other(wheel):
    """Templates, styles, sources in C and Perl; rules, catalogue, profile, locks, scripts and docs."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    own = {str(file.relative_to(ROOT)) for package in settings["packages"] for file in files_below(ROOT / package)}
    folders = ("workflow", "config/workloads", "config/studies", "config/schemas", "config/findings")
    clone = [file for folder in folders for file in files_below(ROOT / folder)] + [*(ROOT / "scripts").glob("*.py")]
    clone += [file for file in (ROOT / "envs").iterdir() if file.stem not in ("dev", "docs", "slurm", "kubernetes")]
    clone += [*(ROOT / "docs").glob("*.md"), ROOT / "config/README.md"]  # `castmates help`
    clone += [  # behind a link
        ROOT / "workflow" / file.relative_to(ROOT)
        for name in ("default", "slurm", "kubernetes")
        for file in files_below(ROOT / "profiles" / name)
    ]
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {f"castmates/_clone/{file.relative_to(ROOT)}" for file in clone}
    assert {name for name in names if ".dist-info/" not in name} == own | shipped
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def files_below(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts]


def test_the_command_runs_outside_of_a_checkout(installed, tmp_path):
    command = installed.interpreter.with_name("castmates")
    for words, shown in (("--version", "castmates "), ("--help", "doctor"), ("doctor", "Measure losses")):
        done = subprocess.run(
            [command, words], cwd=tmp_path, env=installed.environment(), capture_output=True, text=True, check=False
        )
        assert (done.returncode, shown in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_type_checker_sees_the_types_of_the_installed_package(installed, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "import castmates\n"
        "def name(folder: str) -> str:\n"
        "    try:\n"
        "        return str(castmates.load(folder).folder)\n"
        "    except castmates.CastmatesError as problem:\n"
        "        return str(problem)\n"
        "castmates.load(3)\n"
    )
    words = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed.interpreter)]
    done = subprocess.run([*words, file], cwd=tmp_path, capture_output=True, text=True, check=False)
    (error, summary) = done.stdout.splitlines()
    assert re.search(r'program\.py:7: error: Argument 1 to "load" has incompatible type "int"', error)
    assert summary.startswith("Found 1 error")


def test_what_lies_beside_the_modules_is_found(installed):
    assert Path(installed.print("import castmates; print(castmates.__file__)")).is_relative_to(
        installed.interpreter.parents[1]
    )
    installed.print(
        "from castmates.report.figures.style import STYLE_FILE; "
        "from castmates.report.page.common_parts import TEMPLATES; "
        "from castmates.workloads.native import build; "
        "assert STYLE_FILE.is_file() and (TEMPLATES / 'report.html.j2').is_file(); "
        "assert build.fingerprint() and build.content('chase')"
    )


def test_in_an_empty_folder_a_sweep_runs(installed):
    """As docs/elsewhere.md has it; and nothing of the clone is used."""
    run(installed, "init")
    study = installed.folder / "study.yaml"
    schema = re.search(r"\$schema=(.*)", study.read_text())
    assert (installed.folder / schema[1]).resolve().is_relative_to(installed.interpreter.parents[1])
    study.write_text(yaml.safe_dump(STUDY | MODELLED))
    run(installed, "sweep")
    assert "not a measurement" in (installed.results / "report/index.html").read_text()
    workflow = installed.print("from castmates import shipped; print(shipped.snakefile())")
    installed.assert_finished("--snakefile", workflow, "--config", "study=study.yaml")
    machine = installed.print("import json; print(json.load(open('results/small/machine.json'))['castmates'])")
    assert machine == installed.print("import castmates; print(castmates.__version__)")
    assert {one.name for one in installed.folder.iterdir()} <= {"study.yaml", "results", "logs", ".snakemake"}

    assert "chase" in installed.print("import castmates; print(*castmates.load('results/small').effects['lead'])")


def run(installed: Installed, *words: str) -> None:
    done = installed._call("castmates", *words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_the_base_alone_reads_and_plans(wheel, modelled, tmp_path):
    """What `pip install castmates` brings, in the locked versions: no Snakemake, no scipy, no matplotlib, no DuckDB."""
    uv, base = Path(sys.executable).with_name("uv"), tmp_path / "base"
    call(uv, "venv", "--quiet", "--python", sys.executable, base)
    call(uv, "pip", "install", "--quiet", "--python", base / "bin/python", "-c", ROOT / "envs/castmates.lock", wheel)
    assert sum(file.stat().st_size for file in base.rglob("*") if not file.is_symlink()) < 310e6  # 300 on x86 and 3.11
    alone = Installed(modelled.folder, modelled.cache)
    alone.interpreter = base / "bin/python"
    folder = str(modelled.results)
    assert "chase" in alone.print(f"import castmates; print(*castmates.load({folder!r}).effects['lead'])")
    for words, shown in (("show", folder), "Report"), (("plan", folder), "To sweep"), (("sweep", folder), "[sweep]'"):
        done = alone._call("castmates", *words)
        assert (done.returncode, shown in done.stdout + done.stderr) == (words[0] == "sweep", True), done.stderr
