"""Which file a study is read from, as Snakemake's options name it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from castmates.errors import CastmatesError
from castmates.pipeline.followed_study import chosen_study, study_of
from castmates.results.named import DEFAULT_STUDY


def test_both_ways_to_choose_a_study_give_the_same_path():
    assert chosen_study({}) == DEFAULT_STUDY
    assert chosen_study({"study": "config/x.yaml"}) == Path("config/x.yaml")
    assert chosen_study({}, [Path.cwd() / "config/x.yaml"]) == Path("config/x.yaml")


def options(config=None, files=()):
    return SimpleNamespace(config=config or {}, configfiles=files)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("name: mine\nleads: [chase]\n")
    return "mine.yaml"


def test_a_workflow_that_uses_ours_gives_the_study_as_its_configuration(file):
    content = {"name": "mine", "leads": ["chase"]}
    assert study_of(content, options(), [file]) == Path(file)
    assert study_of({"study": "x.yaml"}, options(), [file]) == Path("x.yaml"), "the file only names a study"
    assert study_of(content, options(files=[Path("y.yaml").absolute()]), ["y.yaml", file]) == Path("y.yaml")


@pytest.mark.parametrize(
    ("config", "written", "said"),
    [
        (
            {"name": "mine", "leads": ["stream"]},
            True,
            "changed 'leads' of the configuration that it read from mine.yaml",
        ),
        ({"name": "mine"}, True, "changed 'leads'"),
        ({"name": "mine", "leads": ["chase"]}, False, "'leads' is not understood here"),
    ],
)
def test_a_configuration_that_no_file_has_is_refused(file, config, written, said):
    with pytest.raises(CastmatesError, match=said):
        study_of(config, options(), [file] if written else [])


@pytest.mark.parametrize(
    ("config", "files", "said"),
    [
        ({"study": "a.yaml"}, [Path("b.yaml").absolute()], "one study at a time, not b.yaml and a.yaml"),
        ({}, [Path("a.yaml").absolute(), Path("b.yaml").absolute()], "one study at a time, not a.yaml and b.yaml"),
        ({"margin": 1}, [Path("a.yaml").absolute()], "'margin' is not understood here"),
        ({"margin": 1}, [], "with --config study=FILE or --configfile FILE, and change its keys in that file"),
    ],
)
def test_what_names_no_study_or_two_is_said(config, files, said):
    with pytest.raises(CastmatesError, match=said):
        chosen_study(config, files)
