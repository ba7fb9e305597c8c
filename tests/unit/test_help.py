"""`castmates --help`, `help` and completion: one screen, examples, one name for an option, nothing heavy imported."""

import ast
import re

import pytest
import typer
from typer.testing import CliRunner

from castmates.cli import main
from castmates.cli.command import complete_study, complete_workloads
from castmates.cli.screen import excerpt
from tests import house
from tests.unit.snapshots import assert_as_before


def ask(*words, **environment):
    return CliRunner().invoke(main.app, list(words), env={"COLUMNS": "100"} | environment)


def test_the_list_of_commands_fits_on_a_screen_in_the_order_of_work():
    lines = ask("--help").output.splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert " ".join(listed) == (
        "init doctor hardware-day workloads plan sweep measure profile show open compare trace advice paper demo help"
    )
    assert set(listed) == {one.name.partition(" ")[0] for one in main.COMMANDS} - {"internals"}


@pytest.mark.parametrize("one", main.COMMANDS, ids=lambda one: one.name)
def test_each_command_has_an_example_and_no_flag_a_type(one):
    text = ask(*one.name.split(), "--help").output
    assert "<bool>" not in text
    assert "[[" not in text
    if one.run is not None:
        assert "Example" in text
        assert f"castmates {one.name}" in text.partition("Example")[2]


def test_an_option_has_one_name_and_one_meaning_everywhere():
    """As -n, -j, -q, -v and -o have; JSON is asked for in one way; more launches are --launches."""
    short = {"-n": "--dry-run", "-j": "--cores", "-q": "--quiet", "-v": "--verbose", "-o": "--output"}
    for one in main.COMMANDS:
        options = re.findall(r"^│ +(--[\w-]+)(?: +(-\w)\b)?", ask(*one.name.split(), "--help").output, re.MULTILINE)
        assert all(short[letter] == name for name, letter in options if letter), one.name
        assert not {name for name, _ in options} & {"--json", "--lead-loss", "--to"}, one.name


REFUSED = ("doctor --grant --restore", "doctor --user me", "advice x.yaml --launches 3",
           "sweep config/studies/quick.yaml --partition split-4", "help partitons")  # fmt: skip


def test_options_that_do_not_go_together_and_what_is_mistyped_are_one_sentence():
    assert_as_before("help-mistakes", {words: str(ask(*words.split()).exception) for words in REFUSED})
    assert "Did you mean 'sweep'?" in ask("swep").output
    assert "put -- before your command" in " ".join(ask("measure", "gzip", "-9").output.split())


def test_help_shows_pages_and_commands_without_a_network():
    assert re.search(r"^  partitions +\S", ask("help").output, re.MULTILINE)
    assert ask("help", "partitions").output.startswith("# ")
    assert "Usage: castmates sweep" in ask("help", "sweep").output


def test_what_comes_after_two_dashes_is_snakemake_s(monkeypatch):
    monkeypatch.chdir(house.ROOT)
    study = "config/studies/demo.yaml"
    asked = []
    monkeypatch.setattr("castmates.pipeline.snakemake.run", lambda words, *_: asked.append(words) or 0)
    done = ask("sweep", study, "--launches", "12", "-j", "1", "-n", "--", "--forceall")
    assert done.exit_code == 0, done.exception
    (words,) = asked
    assert words[words.index("--cores") :] == [
        "--cores", "1", "--forceall", "--dry-run", "--config", f"study={study}", "launches=12"
    ]  # fmt: skip


def named_commands(text):
    """Every command that a text names in backticks, code or a line of a shell, up to its comment."""
    whole = re.sub(r'"\s*\n\s*f?"', "", text)  # a sentence of a program may be split over lines
    for said in re.findall(r"(?:`|^ {4,}|^[$#] ?|<code>)(?:sudo )?castmates ([a-z][^`\n<]*)", whole, re.MULTILINE):
        yield re.split(r" -- |  # |\s{3,}| && | \| ", said)[0]


@pytest.mark.parametrize("folder", ["castmates", "config", "docs", "profiles", "envs", "examples", "workflow"])
def test_every_command_that_texts_name_exists_with_these_options(folder):
    kinds = {".py", ".md", ".yaml", ".j2", ".smk"}
    files = [file for file in (house.ROOT / folder).rglob("*") if file.suffix in kinds]
    named = {said for file in files for said in named_commands(file.read_text(encoding="utf-8"))}
    assert named
    for said in named:
        one, words = typer.main.get_command(main.app), re.split(r"[\s{,;:.)\"]+", said)
        while words and words[0] in getattr(one, "commands", {}):
            one = one.commands[words.pop(0)]
        known = {option for parameter in one.params for option in getattr(parameter, "opts", [])} | {"--help"}
        assert one.name != "castmates", said
        assert {*re.findall(r"(?<!\S)--[a-z][\w-]*", said)} <= known, said


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
        ("unknown key 'budget.bloks', did you mean 'launches'?", "bloks"),
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
