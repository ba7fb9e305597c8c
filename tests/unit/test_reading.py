"""Every mistake in a YAML file is reported in one sentence that names file, line and key."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.study.model import Catalogue, Study
from castmates.study.reading import read_keys


def error(text: str, model=Study) -> str:
    with pytest.raises(CastmatesError) as caught:
        read_keys(model, text, "study.yaml")
    return str(caught.value)


def test_a_good_study_is_read_with_defaults():
    study = read_keys(Study, "name: one\nleads: [a]\nantagonists: [b]\nbudget: {launches: 7}\n", "study.yaml")
    assert study.budget.launches == 7
    assert study.budget.rounds == "auto"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: one\nantagonist: [b]\n", "study.yaml, line 2: unknown key 'antagonist', did you mean 'antagonists'?"),
        ("name: one\nbudget:\n  launch: 3\n", "line 3: unknown key 'budget.launch', did you mean 'launches'?"),
        ("name: one\nbudget:\n  launches: many\n", "line 3: 'budget.launches' is 'many', but expected"),
        (
            "name: one\nbudget:\n  launches: 0\n",
            "line 3: 'budget.launches' is 0, but expected greater than or equal to 1",
        ),
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
        ("name: one\nbudget: {launches: true}\n", "'budget.launches' is true, but expected a valid integer"),
        ("name: one\nbudget: {launches: '7'}\n", "'budget.launches' is '7', but expected a valid integer"),
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
    told = error("name: one\nbudget: {launches: x, rounds: y}\n").splitlines()
    assert len(told) == 2


def test_a_yaml_date_stays_a_string():
    assert read_keys(Study, "name: one\ntitle: 2026-01-01\n", "study.yaml").title == "2026-01-01"


HEAD = "name: odd\nleads: [chase]\nantagonists: [stream]\n"
LEVELS = "abcdefghi"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in itertools.pairwise(LEVELS)
)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("seed: !!int foo", "line 4: this is not valid YAML: 'foo' is not a whole number."),
        ("margin: !!float foo", "line 4: this is not valid YAML: 'foo' is not a number."),
        ("platform: !!bool maybe", "line 4: this is not valid YAML: 'maybe' is not true or false."),
        ("title: !!timestamp foo", "line 4: the tag !!timestamp is not supported; leave it out."),
        ("title: !!timestamp 2026-99-99", "line 4: the tag !!timestamp is not supported; leave it out."),
        ("title: !!binary x", "line 4: the tag !!binary is not supported; leave it out."),
        ("title: !!set {a, b}", "line 4: the tag !!set is not supported; leave it out."),
        (f"seed: {'9' * 5000}", "line 4: a number has 5000 characters; at most 40 can be read."),
        (f"budget: {{launches: {'9' * 5000}}}", "line 4: a number has 5000 characters; at most 40 can be read."),
        ('title: "\\ud800"', "line 4: a text has half of a character"),
        ('"\\udfff": 1', "line 4: a text has half of a character"),
        (BOMB, "its aliases (*name) add up to more than 100000 values"),
        ("x: " + "[" * 3000 + "]" * 3000, "line 4: this is not valid YAML: it has more than 50 levels."),
        ("x: [" + "a," * 200_000 + "]", "line 4: this is not valid YAML: it has more than 100000 values."),
        ("? [a, b]\n: 1", "line 4: a key is a list or has keys itself; write a word."),
        ("<<: {a: 1}", "line 4: merge keys (<<) are not supported; write the keys out."),
        ("seed: 010", "line 4: 010 would be 8 in YAML; write the number you mean, or put it in quotes."),
        ("seed: 1:30", "line 4: 1:30 would be 90 in YAML; write the number you mean, or put it in quotes."),
        ("margin: 0:00.5", "line 4: 0:00.5 would be another number in YAML"),
        ("title: a\x01b", "line 4: this is not valid YAML: the character U+0001 cannot stand in it."),
        (f"title: {'a' * 301}", "line 4: 'title' is a text of 303 characters, but expected at most 300 characters."),
    ],
    ids=lambda text: text[:24],
)
def test_what_yaml_or_python_would_stumble_over(line, said):
    assert said in error(f"{HEAD}{line}\n")


STUDIES = sorted((Path(__file__).parents[2] / "config/studies").glob("*.yaml"))
PYTHONS = re.compile(r"Traceback|NoneType|\wNode\(|\[Errno|codec can|\ban? int\b|[Ss]hould have|<class|0x7f")
TAGS = ["!!int ", "!!timestamp ", "!!python/name:os.system ", "&a ", "*a", "<<: "]
WORDS = ["010", "1:30", '"\\ud800"', "9" * 5000, "null", "true", "1.0e+999"]
PIECES = st.sampled_from([*TAGS, *WORDS, "? ", "- ", ": ", *"[]{}\0\t\n#|'%@-~=\u2028"])


@given(st.sampled_from(STUDIES), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 40), PIECES), min_size=1))
def test_shipped_studies_with_anything_in_them_are_studies_or_sentences(file, edits):
    text = file.read_text()
    for place, removed, piece in edits:
        at = place % len(text)
        text = text[:at] + piece + text[at + removed :]
    try:
        read_keys(Study, text, "study.yaml")
    except CastmatesError as problem:
        for sentence in str(problem).splitlines():
            assert sentence.startswith("study.yaml")
            assert sentence.endswith(".")
            assert not PYTHONS.search(sentence)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "it is a pipe or a device"),
        (lambda place: place.symlink_to("/dev/zero"), "it is a pipe or a device"),
        (lambda place: place.mkdir(), "there is no plan.json in it"),
        (lambda place: place.write_bytes(HEAD.encode() + b"title: caf\xe9\n"), "line 4 is not UTF-8 text (byte 0xe9)"),
        (lambda place: place.write_text("# " + "x" * 78 + "\n" * 130_000 + HEAD * 20_000), "it is larger than 1 MiB"),
    ],
    ids=["pipe", "device", "folder", "latin-1", "megabytes"],
)
def test_what_is_no_text_is_a_sentence_and_nothing_waits(tmp_path, make, said):
    """With a real command in a process of its own: what waits for a pipe can only be killed."""
    make(tmp_path / "study.yaml")
    words = [sys.executable, "-m", "castmates", "plan", "study.yaml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert "study.yaml: " in sentence
    assert said in sentence
