"""Every mistake in a YAML file is reported in one sentence that names file, line and key."""

import pytest

from castmates.errors import CastmatesError
from castmates.study.model import Catalogue, Study
from castmates.study.reading import read


def error(text: str, model=Study) -> str:
    with pytest.raises(CastmatesError) as caught:
        read(model, text, "study.yaml")
    return str(caught.value)


def test_a_good_study_is_read_with_defaults():
    study = read(Study, "name: one\nleads: [a]\nantagonists: [b]\nbudget: {blocks: 7}\n", "study.yaml")
    assert study.budget.blocks == 7
    assert study.budget.rounds == "auto"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: one\nantagonist: [b]\n", "study.yaml, line 2: unknown key 'antagonist', did you mean 'antagonists'?"),
        ("name: one\nbudget:\n  block: 3\n", "line 3: unknown key 'budget.block', did you mean 'blocks'?"),
        ("name: one\nbudget:\n  blocks: many\n", "line 3: 'budget.blocks' is 'many', but expected"),
        ("name: one\nbudget:\n  blocks: 0\n", "line 3: 'budget.blocks' is 0, but expected greater than or equal to 1"),
        ("name: one\nleads: stream\n", "line 2: 'leads' is 'stream', but expected a valid list"),
        ("name: one\nleads: [3]\n", "line 2: 'leads.1' is 3, but expected a valid string"),
        ("name: My Study\n", "line 1: 'name' is 'My Study', but a name is made of lower-case letters"),
        ("leads: [a]\n", "the key 'name' is missing"),
        ("name: one\nname: two\n", "line 2: 'name' is written twice"),
        ("name: one\nplacement: {lead: all}\n", "'placement.lead' is 'all', but expected a CPU list such as 0-3"),
        ("name: [one\n", "line 2: this is not valid YAML"),
        ("- name\n", "expected keys such as name"),
        ("", "found nothing"),
        ("name: one\nmixes: [{lead: a, antagonists: []}]\n", "'mixes.1.antagonists'"),
        ("name: one\ntitle: &x [*x]\n", "an alias (*name) stands inside its own anchor"),
        ("name: one\x01\n", "this is not valid YAML"),
        ("name: one\n1: 2\n", "line 2: the key 1 is not a word"),
        ("name: one\nbudget: {blocks: true}\n", "'budget.blocks' is true, but expected a valid integer"),
        ("name: one\nbudget: {blocks: '7'}\n", "'budget.blocks' is '7', but expected a valid integer"),
        *(
            (f"name: one\nbudget: {{slice: {value}}}\n", "but expected seconds from 0.01 to 600, or the word auto")
            for value in ("short", "true", "0.009", "601", "'0.1'")
        ),
        ("name: one\nmixes: [{lead: a, antagonist: [b]}]\n", "unknown key 'mixes.1.antagonist', did you mean"),
    ],
)
def test_mistakes_in_a_study(text, said):
    assert said in error(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workloads:\n  a: {comand: x}\n", "line 2: unknown key 'workloads.a.comand', did you mean 'command'?"),
        (
            "workloads:\n  a: {command: x}\n  a: {command: y}\n",
            "line 3: 'a' is written twice in workloads (first in line 2)",
        ),
        (
            "workloads:\n  a: {command: x, progress: pulse}\n",
            "'workloads.a.progress' is 'pulse', but expected 'heartbeat', 'runs' or 'output'",
        ),
        ("workloads:\n  a: {command: 3}\n", "'workloads.a.command' is 3, but expected a valid string"),
        ("workloads:\n  A b: {command: x}\n", "'A b'"),
        ("workloads:\n  a: {command: x, cores: 0}\n", "'workloads.a.cores' is 0"),
        ("workloads:\n  a: {command: ' '}\n", "expected a command line with at least a program's name"),
        ('workloads:\n  a: {command: "b \'c"}\n', "expected a command line whose quotes are closed"),
        ("workloads:\n  a: {command: x, variables: {B=C: d}}\n", "is no name of an environment variable"),
        ("workloads:\n  a: {command: x, options: {--bytes: 1}}\n", "is no name of an option; write it without '--'"),
        ("workloads:\n  a: {command: x, options: {b: [1]}}\n", "'workloads.a.options.b' is [1], but expected a word"),
        ("workloads:\n  a: {command: x, options: {b: }}\n", "'workloads.a.options.b' is nothing, but expected a word"),
        ("workloads:\n  a: {command: x, options: {b: .inf}}\n", "'workloads.a.options.b' is inf, but expected a word"),
        ("workloads:\n  a: {command: x, package: 'a b'}\n", "expected the name of a Debian package, such as xz-utils"),
        ("workloads:\n  a: {command: x, step_line: 'a('}\n", "expected a regular expression for a line (missing )"),
        ("workloads:\n  a: {command: x, step_line: '(?:a)'}\n", "for a line without '(?'"),
    ],
)
def test_mistakes_in_a_catalogue(text, said):
    assert said in error(text, Catalogue)


def test_several_mistakes_are_all_told_one_a_line():
    told = error("name: one\nbudget: {blocks: x, rounds: y}\n").splitlines()
    assert len(told) == 2


def test_a_yaml_date_stays_a_string():
    assert read(Study, "name: one\ntitle: 2026-01-01\n", "study.yaml").title == "2026-01-01"
