"""`castmates --help` and completion: groups, examples, flags without a type, nothing heavy before a command runs."""

import ast
import re

import pytest
from typer.testing import CliRunner

from castmates.cli import main
from castmates.cli.arguments import complete_study, complete_workloads
from castmates.cli.excerpt import excerpt
from tests import house

EVERY = [name for listed in main.COMMANDS.values() for name, _, _ in listed]


def ask(*words, **environment):
    return CliRunner().invoke(main.app, list(words), env={"COLUMNS": "100"} | environment)


def test_commands_stand_in_groups_in_the_order_of_work():
    text = ask("--help").output
    heads = [text.index(f" {panel} ") for panel in main.COMMANDS]
    assert heads == sorted(heads)
    places = [re.search(rf"^│ {name} ", text, re.MULTILINE) for name in EVERY]
    assert all(places)
    assert [place.start() for place in places] == sorted(place.start() for place in places)


@pytest.mark.parametrize("name", EVERY)
def test_each_command_has_an_example_and_no_flag_a_type(name):
    text = ask(name, "--help").output
    assert "Example" in text
    assert f"castmates {name}" in text.partition("Example")[2]
    assert "<bool>" not in text
    assert "[[" not in text


def test_help_is_plain_into_a_pipe():
    assert "\x1b" not in ask("--help").output


def test_nothing_heavy_is_imported_before_a_command_runs():
    for name, file in house.modules().items():
        if name.startswith("castmates.cli"):
            for node in ast.parse(file.read_text()).body:
                modules = [node.module] if isinstance(node, ast.ImportFrom) else []
                modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                for module in modules:
                    assert module.split(".")[0] not in ("rich", "pandas", "numpy", "scipy", "pydantic", "yaml"), name
                    ours = module.startswith("castmates.") and not module.startswith("castmates.cli")
                    assert not ours or module in ("castmates.errors", "castmates.shipped", "castmates.plugins"), name


def test_studies_and_workloads_are_completed(tmp_path, monkeypatch):
    assert "chase-huge" in list(complete_workloads("chase"))
    assert "stream,chase-huge" in list(complete_workloads("stream,chase"))
    monkeypatch.chdir(tmp_path)
    for folder in ("config/studies", "studies", "results/mine"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("study.yaml", "config/studies/other.yaml", "studies/gzip.yaml"):
        (tmp_path / file).write_text("")
    assert set(complete_study("")) >= {"study.yaml", "config/studies/other.yaml", "studies/gzip.yaml", "results/mine"}
    assert list(complete_study("res")) == ["results/mine"]


@pytest.mark.parametrize(
    ("sentence", "marked"),
    [
        ("unknown key 'budget.bloks', did you mean 'blocks'?", "bloks"),
        ("'leads.1' is 3, but expected a valid string.", "bloks: 5 # five"),  # is not written so: the whole line
        ("'bloks' is 5, but expected more.", "bloks"),
    ],
)
def test_the_line_of_an_error_is_shown_with_a_caret(tmp_path, sentence, marked):
    file = tmp_path / "study.yaml"
    file.write_text("budget:\n  bloks: 5 # five\n")
    source, carets = excerpt(f"{file}, line 2: {sentence}").splitlines()
    begin = carets.index("^")
    assert source[begin : begin + carets.count("^")] == marked


def test_an_error_without_a_line_has_no_excerpt(tmp_path):
    assert excerpt("there is no such thing.") == ""
    assert excerpt(f"{tmp_path}/none.yaml, line 2: 'x' is wrong.") == ""
    (tmp_path / "short.yaml").write_text("name: x\n")
    assert excerpt(f"{tmp_path}/short.yaml, line 9: 'x' is wrong.") == ""
