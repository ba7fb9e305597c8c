"""Whether a workload's program is here: a program counts only when it shows who it is."""

import os
import shutil
from pathlib import Path

import pytest

from castmates.study.model import Catalogue
from castmates.study.reading import read_keys
from castmates.workloads import identity

CATALOGUE = Path(__file__).resolve().parents[2] / "config" / "workloads"
WITHOUT_ANSWER = {"hpcc"}  # prints no version
CONVERT = ["convert", "a.ppm", "null:"]
REAL = "Version: ImageMagick 7.1.1-43 Q16-HDRI x86_64"


@pytest.fixture
def convert(tmp_path):
    """Puts a program named `convert` on a separate PATH; each time it is asked it leaves a line."""

    def put(answer: str) -> str:
        program = tmp_path / "bin" / "convert"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\necho '{answer}'\n")
        program.chmod(0o755)
        return str(program.parent)

    return put


def times_asked(tmp_path: Path) -> int:
    return len((tmp_path / "asked").read_text().splitlines())


def test_a_program_that_is_what_its_name_says_is_here_and_is_asked_once(convert, tmp_path):
    path = convert(REAL)
    assert [identity.lack(CONVERT, "imagemagick", path) for _ in range(3)] == ["", "", ""]
    assert times_asked(tmp_path) == 1


@pytest.mark.parametrize("answer", ["", "convert: ImageMagick is not installed here", "Converts volumes to NTFS."])
def test_a_foreign_program_of_that_name_is_not_here(convert, tmp_path, answer):
    path = convert(answer)
    lack = identity.lack(CONVERT, "imagemagick", path)
    assert f"{tmp_path}/bin/convert" in lack
    assert "not ImageMagick" in lack
    assert "\n" not in lack


def test_a_program_that_has_been_replaced_is_asked_anew(convert, tmp_path):
    assert identity.lack(CONVERT, "imagemagick", convert("another one"))
    path = convert(REAL)
    assert identity.lack(CONVERT, "imagemagick", path) == ""
    assert times_asked(tmp_path) == 2


def test_a_program_behind_a_shell_is_asked_as_well(tmp_path):
    game = tmp_path / "gnugo"
    game.write_text("#!/bin/sh\necho something else\n")
    game.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    assert "not GNU Go" in identity.lack(["sh", "-c", "exec gnugo --benchmark 1"], "gnugo", path)


def test_a_program_without_a_known_answer_or_package_only_has_to_be_there():
    path = os.environ["PATH"]
    assert identity.lack(["sh", "-c", "true"], None, path) == ""
    assert identity.lack(["cat"], "coreutils", path) == ""
    assert identity.lack(["no-such-program"], None, path) == "there is no program 'no-such-program'"


def test_every_package_of_the_catalogue_has_a_known_answer():
    files = [(file.name, file.read_text(encoding="utf-8")) for file in sorted(CATALOGUE.glob("*.yaml"))]
    wanted = {one.package for name, text in files for one in read_keys(Catalogue, text, name).workloads.values()}
    assert wanted - {None} == {package for package, _ in identity.IDENTITIES} | WITHOUT_ANSWER


@pytest.mark.parametrize(("package", "program"), identity.IDENTITIES)
def test_the_program_of_an_installed_package_is_recognised(package, program):
    path = os.pathsep.join([os.environ["PATH"], identity.GAMES])
    if identity.package_version(package) is None or shutil.which(program, path=path) is None:
        pytest.skip(f"apt-get install {package}")
    assert identity.lack([program], package, path) == ""
