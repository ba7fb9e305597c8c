"""What is not installed is named, with the command that installs it."""

import re
import tomllib

import pytest

from castmates import extras
from castmates.errors import CastmatesError
from castmates.extras import MODULES, PACKAGES, SWEEP, TRACE
from tests.workflow.sweeps import ROOT

OPTIONAL = {"ruptures"}  # figures do without


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra, modules in MODULES.items():
        wanted = project["optional-dependencies"][extra] if extra else project["dependencies"]
        names = {re.match(r"[\w.-]+", each)[0] for each in wanted}
        assert names - OPTIONAL == {PACKAGES.get(module, module) for module in modules}


@pytest.fixture
def without(monkeypatch):
    def leave_out(*names):
        monkeypatch.setattr(extras, "_there", lambda module: module not in names)

    return leave_out


def test_one_sentence_names_all_that_lacks(without, monkeypatch, tmp_path):
    without()
    assert extras.lacking_words(SWEEP, TRACE) == ""
    without("yaml", "scipy", "duckdb")
    monkeypatch.setattr(extras, "clone", lambda: None)
    with pytest.raises(CastmatesError) as problem:
        extras.refuse_lacking(SWEEP)
    assert str(problem.value) == (
        "pyyaml and scipy are not installed: run `pip install 'castmates[sweep]'`, and then the same command again."
    )
    assert extras.lacking_words(SWEEP, TRACE).endswith("'castmates[sweep,trace]'`")
    monkeypatch.setattr(extras, "clone", lambda: tmp_path)
    without("pyarrow")
    assert extras.lacking_words(SWEEP) == f"pyarrow is not installed: run `pip install -e '{tmp_path}'`"


def test_an_import_that_fails_says_which_extra_has_it(without):
    without("google.protobuf")
    assert "protobuf is not installed" in str(extras.explained(ModuleNotFoundError(name="google")))
    ours = ModuleNotFoundError(name="castmates.nowhere")
    with pytest.raises(ModuleNotFoundError) as problem:
        extras.explained(ours)
    assert problem.value is ours
