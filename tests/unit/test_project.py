"""Which file a study is read from, as Snakemake's options name it."""

from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.project import DEFAULT_STUDY, chosen_study


def test_both_ways_to_choose_a_study_give_the_same_path():
    assert chosen_study({}) == DEFAULT_STUDY
    assert chosen_study({"study": "config/x.yaml"}) == Path("config/x.yaml")
    assert chosen_study({}, [Path.cwd() / "config/x.yaml"]) == Path("config/x.yaml")


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
