"""The antagonist that docs/contributing/ builds step by step compiles, keeps its promise, and fits the catalogue."""

import re
from pathlib import Path

import pytest

from castmates.study.model import Catalogue
from castmates.study.reading import read_keys
from castmates.workloads.native import build as native
from tests.runner import promises
from tests.runner.assembly import functions
from tests.runner.compilers import Target, text_of
from tests.runner.programs import run

PAGE = (Path(__file__).parents[2] / "docs/contributing/a-new-antagonist.md").read_text(encoding="utf-8")


def launch(language: str) -> str:
    return re.search(rf"^ *```{language}\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "forward.c"
    file.write_text(launch("c"), encoding="utf-8")
    return file


def test_the_kernel_of_the_page_runs_and_verifies_its_result(compiler, source):
    native.compile_program(source, source.with_suffix(""), compiler, (*native.FLAGS, "-Wall", "-Wextra", "-Werror"))
    assert run([source.with_suffix(""), "--units", "1003", "--threads", "2"]) == (0, "", "")


def test_the_kernel_of_the_page_keeps_the_promise_of_the_page(compiler, source, tmp_path):
    here = Target(compiler[0], "native")
    made = functions(text_of([*compiler, *native.compile_flags(compiler)], source, tmp_path), here.arm)
    ((kernel, promised),) = eval(f"{{{launch('python').strip()}}}", vars(promises)).items()
    assert kernel == "forward"
    for name, checks in promised.items():
        assert made[name].loops
        assert [wrong for check in checks for wrong in check(made[name], here)] == []


def test_the_entry_of_the_page_is_one_of_the_catalogue():
    entry = read_keys(Catalogue, f"workloads:\n{launch('yaml')}", "the page").workloads["forward"]
    assert entry.command == "forward"
