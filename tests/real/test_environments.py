"""Environments: keys, real builds with uv from a lock of one small package, and what happens after a kill."""

import contextlib
import hashlib
import json
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.workloads import environments, python_environment

REPOSITORY = Path(__file__).parents[2]


def make_wheel(folder: Path, version: str = "1.0") -> str:
    """Write the wheel of a package `tiny` and return its sha256."""
    info = f"tiny-{version}.dist-info"
    files = {
        "tiny.py": f"VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD"
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    wheel = folder / f"tiny-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.fixture
def envs(tmp_path, monkeypatch):
    """A folder with one lock, whose only package uv finds without a network."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    digest = make_wheel(wheels)
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_OFFLINE", "1")
    folder = tmp_path / "envs"
    folder.mkdir()
    (folder / "small.in").write_text("tiny  # the package\n")
    (folder / "small.lock").write_text(f"# by hand\ntiny==1.0 \\\n    --hash=sha256:{digest}\n")
    (folder / "small.yaml").write_text("name: small\ndependencies:\n  - python >=3.10,<4\n  - pip\n")
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def run_python(place: Path, code: str, **more: str) -> subprocess.CompletedProcess:
    variables = environments.environment_of(place)
    path = os.pathsep.join([variables.pop("PATH"), os.environ["PATH"]])
    return subprocess.run(
        ["python", "-c", code], env={"PATH": path} | variables | more, capture_output=True, text=True, check=False
    )


def test_known_names_native_and_the_locks_of_workloads(envs):
    for name in ("castmates", "dev", "compiler", "another"):
        (envs / f"{name}.lock").write_text("")
    assert environments.known(envs) == ["native", "another", "small"]


def test_key_follows_lock_and_python_range_and_nothing_else(envs):
    lock, conda = envs / "small.lock", envs / "small.yaml"
    first = environments.key("small", envs)
    assert len(first) == 12
    assert int(first, 16) >= 0
    conda.write_text("# a remark\n" + conda.read_text())
    os.utime(lock)
    assert environments.key("small", envs) == first
    conda.write_text(conda.read_text().replace("<4", "<5"))
    second = environments.key("small", envs)
    lock.write_text(lock.read_text() + "# more\n")
    assert len({first, second, environments.key("small", envs)}) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name: x\n",
        "dependencies: [pip]\n",
        "dependencies: [python]\n",
        "a: [\n",
        "dependencies: [python-dateutil]\n",
    ],
)
def test_a_conda_file_without_a_python_range_is_named(envs, text):
    (envs / "small.yaml").write_text(text)
    with pytest.raises(CastmatesError, match=r"small\.yaml.*python >=3"):
        environments.key("small", envs)


def test_an_unknown_environment_is_named_with_those_there_are(envs):
    with pytest.raises(CastmatesError, match=r"'larger'.*native, small"):
        environments.key("larger", envs)


def test_build_installs_the_lock_once_and_says_what_is_there(envs, cache):
    place = environments.build("small", envs, cache)
    assert place == environments.location("small", envs, cache)
    facts = json.loads(environments.ready_file(environments.location("small", envs, cache)).read_text())
    assert facts["name"] == "small"
    assert facts["key"] == environments.key("small", envs)
    assert facts["packages"] == {"tiny": "1.0"}
    assert facts["python"] == run_python(place, "import platform; print(platform.python_version())").stdout.strip()
    assert facts["bytes"] > 0
    assert list((place / "lib").rglob("__pycache__/tiny.*.pyc"))  # compiled at once, not at the first import

    (place / "mark").touch()
    assert environments.build("small", envs, cache) == place
    assert (place / "mark").exists()


def test_the_interpreter_sees_castmates_and_nothing_of_the_framework(envs, cache):
    place = environments.build("small", envs, cache)
    done = run_python(place, "import castmates.workloads.heartbeat as h, tiny; print(h.__file__, tiny.VERSION)")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.split()[0]).samefile(REPOSITORY / "castmates/workloads/heartbeat.py")
    assert "No module named 'pydantic'" in run_python(place, "import pydantic").stderr


def test_a_half_built_directory_is_removed_and_built_anew(envs, cache):
    place = environments.location("small", envs, cache)
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").write_text("#!/bin/false\n")
    (place / "rubbish").touch()
    (place / "ready.draft").write_text("{")
    assert environments.build("small", envs, cache) == place
    assert not (place / "rubbish").exists()
    assert run_python(place, "import tiny").returncode == 0


def test_a_package_with_another_hash_is_refused_and_the_next_attempt_starts_clean(envs, cache):
    lock = envs / "small.lock"
    good = lock.read_text()
    lock.write_text(good[:-65] + "0" * 64 + "\n")
    with pytest.raises(CastmatesError, match=r"(?s)environment 'small'.*[Hh]ash"):
        environments.build("small", envs, cache)
    assert not environments.ready_file(environments.location("small", envs, cache)).exists()
    lock.write_text(good)
    assert run_python(environments.build("small", envs, cache), "import tiny").returncode == 0


def test_a_missing_interpreter_is_one_sentence(envs, cache):
    conda = envs / "small.yaml"
    conda.write_text(conda.read_text().replace(">=3.10,<4", ">=3.98,<3.99"))
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(
        CastmatesError, match=rf"small\.yaml needs Python >=3\.98,<3\.99.*only .*{here}.*install"
    ) as error:
        environments.build("small", envs, cache)
    assert "\n" not in str(error.value)


def test_two_builders_at_once_build_once(envs, cache):
    code = (
        "import sys; from pathlib import Path; from castmates.workloads import environments as e;"
        "print(e.build('small', Path(sys.argv[1]), Path(sys.argv[2])))"
    )
    command = [sys.executable, "-c", code, str(envs), str(cache)]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [builder.communicate() for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0], told
    place = environments.location("small", envs, cache)
    assert {said.strip() for said, _ in told} == {str(place)}
    assert sum(words.count("Building the environment") for _, words in told) == 1


def test_native_holds_the_kernels_and_needs_no_python():
    place = environments.build("native", REPOSITORY / "envs", REPOSITORY / cache_folder())
    assert (place / "bin" / "spin").is_file()
    facts = json.loads((place / "ready.json").read_text())
    assert facts["compiler"]
    assert facts["compiler_version"]
    assert environments.environment_of(place) == {"PATH": str(place / "bin")}


def test_of_two_nodes_that_build_kernels_at_once_the_faster_one_stays(cache, monkeypatch):
    """Each holds the lock, as on a shared folder whose locks each node has for itself."""
    place = environments.location("native", REPOSITORY / "envs", cache)
    place.mkdir(parents=True)  # Snakemake makes the folder of an output
    built = []

    def build(bin_dir: Path, _compiler: list[str]) -> None:
        node = platform.node()
        bin_dir.mkdir(parents=True)
        (bin_dir / "spin").write_text(node)
        if node == "slow":  # the other one begins and ends meanwhile
            monkeypatch.setattr(platform, "node", lambda: "fast")
            environments.build("native", REPOSITORY / "envs", cache)
            monkeypatch.setattr(platform, "node", lambda: "slow")
        built.append(node)

    monkeypatch.setattr(environments.python_environment, "alone", lambda _file: contextlib.nullcontext(-1))
    monkeypatch.setattr(environments.native_build, "find_compiler", lambda: ["true"])
    monkeypatch.setattr(environments.native_build, "build", build)
    monkeypatch.setattr(platform, "node", lambda: "slow")
    assert environments.build("native", REPOSITORY / "envs", cache) == place
    assert built == ["fast", "slow"]
    assert (place / "bin/spin").read_text() == "fast"
    assert environments.ready_file(place).is_file()
    assert list(place.parent.iterdir()) == [place], "nothing is left beside it"


def test_every_lock_of_the_repository_is_whole():
    envs = REPOSITORY / "envs"
    for name in [*environments.known(envs)[1:], environments.COMPILER]:
        text = (envs / f"{name}.lock").read_text()
        assert environments.python_range(name, envs).startswith(">=3.11")
        assert python_environment.locked_versions(envs / f"{name}.lock")
        # No lock names an index; PyTorch's builds without CUDA are on a page of their own only.
        pages = ["--find-links https://download.pytorch.org/whl/cpu/torch/"] if name == "torch" else []
        assert [line for line in text.splitlines() if "://" in line] == pages
        pinned = text.count("==") - text.count("_version ==") - text.count("machine ==") - text.count("platform ==")
        assert 0 < pinned <= text.count("--hash=sha256:")
