"""Help, results, plan, docs and the sources of sentences are plain English: nothing of a list that was lost is back."""

import re

import pytest
from typer.testing import CliRunner

from castmates.cli import main
from castmates.report.text import words
from tests.house import ROOT
from tests.unit.plain_words import SENTENCES, lost_sentences, strange_words
from tests.unit.results_maker import make

COMMANDS = [one.name for one in main.COMMANDS]
DOCS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("config/*.md"), *ROOT.glob("profiles/**/*.md")]
SHOWN = ("report", "terminal", "preview", "cli", "machine/doctor", "analysis", "pipeline", "results")
SOURCES = [file for folder in SHOWN for kind in ("*.py", "*.j2") for file in (ROOT / "castmates" / folder).rglob(kind)]


def ask(*arguments: str) -> str:
    done = CliRunner().invoke(main.app, list(arguments), env={"COLUMNS": "1000"})
    assert done.exit_code == 0, done.exception
    return done.output


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_plain(name):
    text = ask(*name.split(), "--help")
    assert not [*lost_sentences(text), *strange_words(text)]


@pytest.mark.parametrize("failed", [0, 2])
def test_a_result_in_the_terminal_is_plain(tmp_path, failed):
    text = ask("show", str(make(tmp_path / "study", failed=failed)))
    assert not [*lost_sentences(text), *strange_words(text)]


def test_a_plan_is_plain(monkeypatch):
    monkeypatch.chdir(ROOT)
    for words_of_it in (["config/studies/demo.yaml"], ["config/studies/demo.yaml", "--all"]):
        text = ask("plan", *words_of_it)
        assert not [*lost_sentences(text), *strange_words(text)]


@pytest.mark.parametrize("file", DOCS, ids=lambda file: str(file.relative_to(ROOT)))
def test_docs_are_plain(file):
    text = file.read_text(encoding="utf-8")
    assert not [*lost_sentences(text), *strange_words(text)]


def test_no_source_can_write_a_lost_sentence():
    """Branches that no example reaches too: a sentence may be split over lines and strings."""
    found = {}
    for file in SOURCES:
        text = re.sub(r'"\s*\n\s*f?"', "", file.read_text(encoding="utf-8"))
        if there := list(lost_sentences(text)):
            found[str(file.relative_to(ROOT))] = there
    assert len(SOURCES) > 100
    assert not found


def test_the_list_finds_what_it_is_for():
    """Sentences as they were."""
    for text in (
        "dlrm-train may or may not change beside compute (4.5 %): the data cannot tell.",
        "The control found no fault, but for dlrm it does not exclude a difference larger than the margin",
        "more launches or\nrounds would tell.",
        "p95 of dlrm-train is refused in 3 of 5 scenes",
        "Each is missing where the machine lacks it, and says so",
    ):
        assert list(lost_sentences(text))
    for text in ("A workload that fails is told", "It has a design of its own.", "kept, for the search is better"):
        assert list(strange_words(text))
    assert not list(strange_words("unclear, and a share of its own rate"))
    assert len(SENTENCES) >= 50
    assert not list(lost_sentences(words.NO_PLATFORM))
