"""README.md is short, its commands and keys exist, and its numbers are those of the runs that it names."""

import csv
import re

import pytest
import typer
import yaml

from castmates import __version__
from castmates.cli.main import app
from castmates.study.model import Study
from castmates.study.reading import read_keys
from docs_site.links import LINK
from tests.house import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = [*re.findall(r"`([^`\n]+)`", README), *re.findall(r"^    (\S.*)$", README, re.MULTILINE)]
COMMANDS = [line for code in CODE for line in code.split(" && ") if line.startswith("castmates ")]


def test_it_is_short():
    assert len(README.splitlines()) <= 90
    assert len([link for link in LINK.finditer(README) if not link["picture"]]) == 6


def test_all_pages_are_those_of_the_start_page():
    linked = {link["target"].partition("#")[0] for link in LINK.finditer((ROOT / "docs/index.md").read_text())}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= {*linked, "index.md"}


@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_exist(line):
    command, words = typer.main.get_command(app), line.split(" -- ")[0].split()[1:]
    assert words[0] in command.commands
    while words and words[0] in getattr(command, "commands", ()):
        command = command.commands[words.pop(0)]
    assert {word for word in words if word.startswith("--")} <= {name for one in command.params for name in one.opts}


def test_its_targets_exist():
    targets = set(re.findall(r"\bmake ([a-z-]+)", " ".join(CODE)))
    assert targets == {"demo", "doctor", "sweep", "test"}
    assert not [one for one in targets if not re.search(rf"^{one}:", (ROOT / "Makefile").read_text(), re.MULTILINE)]


def test_its_keys_are_those_of_a_study():
    keys = [code for code in CODE if re.match(r"[a-z]+: [{\[]", code)]
    assert len(keys) == 3
    study = read_keys(Study, "\n".join(["name: mine", "antagonists: [stream]", *keys]), "README.md")
    assert study.recommend
    assert study.leads[0] in yaml.safe_load((ROOT / "config/workloads/services.yaml").read_text())["workloads"]


def test_its_losses_are_those_of_the_run_that_it_names():
    (place,) = re.findall(r"`(benchmarks/runs/[a-z-]+)`", README)
    newest = sorted((ROOT / place).glob("*/effects.csv"))[-1]
    rows = {
        row["antagonists"]: row
        for row in csv.DictReader(newest.open())
        if (row["lead"], row["role"], row["baseline"]) == ("dlrm-train", "lead", "alone")
    }
    told = re.findall(r"^\| `(\w+)`, which .*?\| (.*?) \| (.*?) \|$", README, re.MULTILINE)
    assert [antagonist for antagonist, *_ in told] == ["stream", "compute"]
    for antagonist, loss, verdict in told:
        numbers = [f"{float(rows[antagonist][name]):.1f}" for name in ("loss_pct", "loss_low", "loss_high")]
        assert loss.replace("−", "-") == "{} % [{}, {}]".format(*numbers)
        assert verdict.removesuffix(" above 3 %") == rows[antagonist]["verdict"]


def test_the_changelog_is_short_and_begins_with_this_version():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    heads = [line for line in lines if line.startswith("## ")]
    assert heads[0].startswith(f"## {__version__}")
    assert len(heads) > 1 or len(lines) <= 60
