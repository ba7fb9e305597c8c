"""What is measured again is decided by what runs: comments, layout and what only plans measure nothing again."""

import json
import shutil

import pytest

from castmates.workloads import sources
from castmates.workloads.native import build as native
from tests.golden.digests import DIGESTS, digests, forget

ADVICE = """
Where this is wanted, everything that it names is measured again in every study: raise PROTOCOL in
castmates/study/spec.py if the way of measuring or a default changed, write CHANGELOG.md, and renew with
`python -m tests.golden`."""


@pytest.mark.parametrize("part", ["modules", "kernels", "workloads", "defaults"])
def test_the_digests_of_what_is_measured_are_the_golden_ones(part):
    golden, now = json.loads(DIGESTS.read_text())[part], digests()[part]
    changed = {name for name in golden.keys() & now.keys() if golden[name] != now[name]}
    assert not changed | (golden.keys() - now.keys()), f"{sorted(changed)}{ADVICE}"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package, to be edited."""
    shutil.copytree(sources.ROOT / "castmates", tmp_path / "castmates", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    return tmp_path / "castmates"


def digest(module="castmates.workloads.suites.run"):
    forget()
    return sources.digest_of(["{python}", "-m", module])


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_what_cannot_change_a_run_changes_no_digest(package):
    before = digest()
    edit(
        package / "workloads" / "suites" / "expand.py", '"""', '"""Only plans. '
    )  # a module of the room that does not run
    edit(package / "workloads" / "suites" / "run.py", "import argparse\n", "import argparse\n\n# a comment\n\n")
    edit(package / "workloads" / "suites" / "run.py", '"""`python -m', '"""Another docstring. `python -m')
    edit(package / "__init__.py", "__version__ = ", "__version__ = '9' + ")
    assert digest() == before
    (package / "workloads" / "child.py").rename(package / "child.py")
    for file in (package / "workloads" / "suites").glob("*.py"):
        file.write_text(file.read_text().replace("castmates.workloads import child", "castmates import child"))
    assert digest() == before  # a move


@pytest.mark.parametrize(
    ("module", "file", "old", "new"),
    [
        ("castmates.workloads.suites.run", "workloads/suites/run.py", "CHECKS =", "MORE = 1\nCHECKS ="),
        ("castmates.workloads.suites.run", "workloads/child.py", "import ", "import this\nimport "),  # in another room
        (
            "castmates.workloads.tfmodels",
            "workloads/tfmodels/vision.py",
            "BUILDERS =",
            "MORE = 1\nBUILDERS =",
        ),  # imported by a name put together
        ("castmates.workloads.tfmodels", "inside/perf.py", "import ", "import this\nimport "),  # imported in a function
        ("castmates.workloads.data.perl", "workloads/data/letters.pl", "a", "b"),  # read, not imported
        ("castmates.workloads.data.perl", "workloads/data/csource.py", "", None),  # not its business
    ],
)
def test_what_runs_is_digested_wherever_it_lies(package, module, file, old, new):
    before = digest(module)
    edit(package / file, old, "# nothing" if new is None else new)
    assert (digest(module) == before) is (new is None)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("from castmates.workloads.child import a as go", "from castmates.workloads.child import b as go"),
        (
            "from castmates.workloads.suites.npb import a",
            "from castmates.workloads.suites.parsec import a",
        ),  # both are reached anyway
        ('class A(int): "doc"', 'class A(str): "doc"'),
        ('"doc"; x = 1', '"doc"; x = 2'),
    ],
)
def test_what_shares_a_line_with_what_does_not_count_counts(package, text, other):
    file = package / "workloads" / "suites" / "run.py"
    edit(file, "CHECKS =", f"{text}\nCHECKS =")
    before = digest()
    edit(file, text, other)
    assert digest() != before


def test_two_files_that_change_places_are_another_program(package):
    before = digest()
    one, other = package / "workloads" / "suites" / "npb.py", package / "workloads" / "suites" / "parsec.py"
    texts = one.read_text(), other.read_text()
    one.write_text(texts[1])
    other.write_text(texts[0])
    assert digest() != before


def test_a_blank_line_within_a_text_counts(package):
    file = package / "workloads" / "data" / "csource.py"
    before = digest("castmates.workloads.data.csource")
    edit(file, "    return 0;\n", "\n    return 0;\n")
    assert digest("castmates.workloads.data.csource") != before


def test_comments_of_kernels_do_not_count(monkeypatch, tmp_path):
    (tmp_path / "spin.c").write_text('int a = 1; // one\n\n/* two\nlines */ char *b = "// \\" kept";\n')
    monkeypatch.setattr(native, "SOURCES", tmp_path)
    before = native.content("spin")
    (tmp_path / "spin.c").write_text('int a = 1;\n  char *b = "// \\" kept"; // three\n')
    assert native.content("spin") == before
    (tmp_path / "spin.c").write_text('int a = 1;\n  char *b = "// \\" other";\n')
    assert native.content("spin") != before
