"""A mistake in a study is one sentence, and loses nothing."""

import pytest

from castmates.errors import CastmatesError
from castmates.project import load
from tests.workflow.sweeps import PROFILE, Sweeps

pytestmark = pytest.mark.core

MISTAKES = [
    ({"placement": {"antagonists": "1,1"}}, "names CPU 1 twice"),
    ({"antagonists": ["straem"]}, "did you mean 'stream'?"),
    ({"antagonist": ["stream"]}, "unknown key 'antagonist'"),
    ({"leads": []}, "nothing to measure"),
    ({"workloads": {"a": {"like": "b"}, "b": {"like": "a"}}}, "goes round in a circle"),
    ({"workloads": {"wide": {"command": "true", "cores": 999}}, "antagonists": ["wide"]}, "999"),
    ({"workloads": {"stream": {"command": "true"}}}, "names must be unique"),
]


@pytest.mark.parametrize(("changes", "said"), MISTAKES)
def test_a_mistake_in_the_study_is_one_sentence(tmp_path, monkeypatch, changes, said):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    sweeps.write_study(changes)
    monkeypatch.chdir(sweeps.folder)
    with pytest.raises(CastmatesError) as raised:
        load().plan()
    assert said in str(raised.value)
    assert "config/config.yaml" in str(raised.value)


def test_a_mistake_is_told_by_the_workflow_too_and_loses_nothing(project):
    before = project.launches()
    changes, said = MISTAKES[2]
    project.write_study(changes)
    done = project.run()
    assert done.returncode != 0
    profile, sentence = done.stderr.splitlines()
    assert profile == PROFILE
    assert sentence.startswith("castmates: config/config.yaml")
    assert said in sentence
    assert project.launches() == before
