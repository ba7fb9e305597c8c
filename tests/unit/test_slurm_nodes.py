"""What a launch asks of Slurm: an exclusive node of its class, and another one after a failure if there is one."""

import pytest

from castmates.pipeline.slurm_nodes import Cluster, nodes
from castmates.results import node_notes
from castmates.results.folder import StudyFolder
from castmates.study.machine_keys import SlurmKeys

ALL = {"n1": "old,big", "n2": "new", "n3": "new,big"}


@pytest.fixture
def cluster():
    """Three nodes; `down` are those that run nothing now."""

    def made(down: set[str] = frozenset()) -> Cluster:
        def ask(*options: str) -> list[str]:
            named = next((option.partition("=")[2].split(",") for option in options if "--nodes=" in option), ALL)
            lost = down if any("--states=" in option for option in options) else set()
            return [f"{node} {features}" for node, features in ALL.items() if node in named and node not in lost]

        return Cluster(ask)

    return made


@pytest.mark.parametrize(
    ("keys", "refused", "failed", "down", "wanted"),
    [
        ({}, [], [], set(), "--exclusive"),
        ({}, [], ["n2"], set(), "--exclusive --exclude=n2"),
        ({}, [], ["n2", "n3"], set(), "--exclusive --exclude=n2,n3"),
        ({}, [], ["n1", "n2", "n3"], set(), "--exclusive"),  # a failure on every node is none of a node's
        ({}, [], ["n2"], {"n1", "n3"}, "--exclusive"),
        ({}, ["n1", "n2", "n3"], [], set(), "--exclusive --exclude=n1,n2,n3"),  # never right, whatever is left
        ({"constraint": "new"}, [], ["n2"], set(), "--exclusive --exclude=n2"),
        ({"constraint": "old"}, [], ["n1"], set(), "--exclusive"),
        ({"constraint": "old|new"}, [], ["n1"], set(), "--exclusive"),  # what Slurm makes of it is not known here
        ({"nodelist": "n1,n3"}, [], [], set(), "--exclusive --exclude=n2"),
        ({"nodelist": "n1,n3"}, [], ["n3"], set(), "--exclusive --exclude=n2,n3"),
    ],
)
def test_the_options(cluster, keys, refused, failed, down, wanted):
    assert cluster(down).options(SlurmKeys(**keys), refused, failed) == wanted


def test_where_slurm_does_not_answer_nothing_is_left_out(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert nodes() == set()
    assert Cluster().options(SlurmKeys(), (), ["n1"]) == "--exclusive"


def test_notes_are_of_one_sweep(tmp_path):
    folder = StudyFolder(tmp_path)
    assert node_notes.begun_on(folder, "chase-1/2") == node_notes.refused_by(folder, "milan") == []
    for node in ("n2", "n1"):
        node_notes.note_attempt(folder, "chase-1/2", node)
        node_notes.note_refusal(folder, "milan", node)
    assert node_notes.begun_on(folder, "chase-1/2") == ["n2", "n1"]
    assert node_notes.refused_by(folder, "milan") == ["n1", "n2"]
    node_notes.forget(folder)
    assert node_notes.begun_on(folder, "chase-1/2") == node_notes.refused_by(folder, "milan") == []
