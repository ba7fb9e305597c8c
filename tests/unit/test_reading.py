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
from tests.unit.snapshots import assert_as_before


def error(text: str, model=Study) -> str:
    with pytest.raises(CastmatesError) as caught:
        read_keys(model, text, "study.yaml")
    return str(caught.value)


MISTAKES = [
    "name: one\nantagonist: [b]\n", "name: one\nbudget:\n  launch: 3\n", "name: one\nbudget:\n  launches: many\n",
    "name: one\nbudget:\n  launches: 0\n", "name: one\nleads: stream\n", "name: one\nleads: [3]\n", "name: My Study\n",
    "leads: [a]\n", "name: one\nname: two\n", "name: one\nplacement: {lead: all}\n", "name: [one\n", "- name\n", "",
    "name: one\nmixes: [{lead: a, antagonists: []}]\n", "name: one\ntitle: &x [*x]\n", "name: one\x01\n",
    "name: one\n1: 2\n", "name: one\nbudget: {launches: true}\n", "name: one\nbudget: {launches: '7'}\n",
    *(f"name: one\nbudget: {{slice: {value}}}\n" for value in ("short", "true", "0.009", "601", "'0.1'")),
    "name: one\nmixes: [{lead: a, antagonist: [b]}]\n",
]  # fmt: skip
OF_A_CATALOGUE = [
    "a: {comand: x}", "a: {command: x}\n  a: {command: y}", "a: {command: x, progress: pulse}", "a: {command: 3}",
    "A b: {command: x}", "a: {command: x, cores: 0}", "a: {command: ' '}", 'a: {command: "b \'c"}',
    "a: {command: x, variables: {B=C: d}}", "a: {command: x, options: {--bytes: 1}}",
    "a: {command: x, options: {b: [1]}}", "a: {command: x, options: {b: }}", "a: {command: x, options: {b: .inf}}",
    "a: {command: x, package: 'a b'}", "a: {command: x, step_line: 'a('}", "a: {command: x, step_line: '(?:a)'}",
]  # fmt: skip


def test_each_mistake_is_one_sentence():
    of_catalogues = {text: error(f"workloads:\n  {text}\n", Catalogue).splitlines() for text in OF_A_CATALOGUE}
    assert_as_before("mistakes", {repr(text): error(text).splitlines() for text in MISTAKES} | of_catalogues)


def test_a_good_study_is_read_with_defaults():
    study = read_keys(Study, "name: one\nleads: [a]\nantagonists: [b]\nbudget: {launches: 7}\n", "study.yaml")
    assert study.budget.launches == 7
    assert study.budget.rounds == "auto"


def test_several_mistakes_are_all_told_one_a_line():
    assert len(error("name: one\nbudget: {launches: x, rounds: y}\n").splitlines()) == 2


def test_a_yaml_date_stays_a_string():
    assert read_keys(Study, "name: one\ntitle: 2026-01-01\n", "study.yaml").title == "2026-01-01"


HEAD = "name: odd\nleads: [chase]\nantagonists: [stream]\n"
LEVELS = "abcdefghi"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in itertools.pairwise(LEVELS)
)


STUMBLES = [
    "seed: !!int foo", "margin: !!float foo", "platform: !!bool maybe", "title: !!timestamp foo",
    "title: !!timestamp 2026-99-99", "title: !!binary x", "title: !!set {a, b}", f"seed: {'9' * 5000}",
    f"budget: {{launches: {'9' * 5000}}}", 'title: "\\ud800"', '"\\udfff": 1', BOMB, "x: " + "[" * 3000 + "]" * 3000,
    "x: [" + "a," * 200_000 + "]", "? [a, b]\n: 1", "<<: {a: 1}", "seed: 010", "seed: 1:30", "margin: 0:00.5",
    "title: a\x01b", f"title: {'a' * 301}",
]  # fmt: skip


def test_what_yaml_or_python_would_stumble_over():
    assert_as_before("stumbles", {repr(line[:50]): error(f"{HEAD}{line}\n") for line in STUMBLES})


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
