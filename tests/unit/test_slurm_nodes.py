"""What a launch asks of Slurm: an exclusive node of its class, and another one after a failure if there is one."""

import pytest
from snakemake.resources import Resource

from castmates.errors import CastmatesError
from castmates.pipeline.planned_sweep import PAUSE, Cluster, in_effect, nodes
from castmates.results import known_nodes
from castmates.results.folder import StudyFolder
from castmates.study.machine_keys import SlurmKeys

ALL = {"n1": "old,big", "n2": "new", "n3": "new,big", "n4": "new"}
PARTITIONS = {"main*": ("n1", "n2", "n3"), "one": ("n1",), "other": ("n1", "n4")}


@pytest.fixture
def cluster():
    """Three nodes and one outside the default partition; `down` are those that run nothing now."""

    def made(down: set[str] = frozenset()) -> Cluster:
        def ask(*options: str) -> list[str]:
            given = dict(option.split("=", 1) for option in options if option)
            named = given["--nodes"].split(",") if "--nodes" in given else ALL
            lost = down if "--states" in given else set()
            return [
                f"{node} {partition} {ALL[node]}"
                for partition, members in PARTITIONS.items()
                for node in members
                if node in named and node not in lost
                and given.get("--partition", partition).rstrip("*") == partition.rstrip("*")
            ]  # fmt: skip

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
        ({"nodelist": "n1,n3"}, [], [], set(), "--exclusive --exclude=n2,n4"),
        ({"nodelist": "n1,n3"}, [], ["n3"], set(), "--exclusive --exclude=n2,n3,n4"),
        ({"nodelist": "n8,n9"}, [], [], set(), "--exclusive"),  # never all nodes
        ({"partition": "one"}, [], ["n1"], set(), "--exclusive"),  # the only node of its partition
        ({"partition": "other"}, [], ["n1"], set(), "--exclusive --exclude=n1"),
        ({"partition": "other", "constraint": "old"}, [], ["n1"], set(), "--exclusive"),
    ],
)
def test_the_options(cluster, keys, refused, failed, down, wanted):
    assert cluster(down).options(SlurmKeys(**keys), refused, failed) == wanted


def test_where_slurm_does_not_answer_nothing_is_left_out(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert nodes() == set()
    assert Cluster().options(SlurmKeys(), (), ["n1"]) == "--exclusive"


def test_a_slurm_that_did_not_answer_is_asked_again():
    answers, now = [[], [], ["n1 main* old"], ["n1 main* old", "n2 main* new"]], [0.0]
    cluster = Cluster(lambda *_: answers.pop(0), lambda: now[0])
    keys = SlurmKeys(nodelist="n1")
    assert [cluster.options(keys) for _ in range(3)] == ["--exclusive"] * 3
    assert len(answers) == 2, "not for each launch"
    now[0] += PAUSE
    assert cluster.options(keys) == cluster.options(keys) == "--exclusive --exclude=n2"


def test_a_list_of_unknown_nodes_is_one_sentence(cluster):
    cluster().refuse_unknown("milan", "n1,n9")
    Cluster(lambda *_: []).refuse_unknown("milan", "n9")  # Slurm does not answer
    with pytest.raises(CastmatesError, match=r"'machines\.milan\.slurm\.nodelist' is 'n8,n9', and `sinfo` shows none"):
        cluster().refuse_unknown("milan", "n8,n9")


def test_what_the_profile_sets_for_launches_wins_and_what_it_has_for_all_jobs_comes_last():
    of_jobs = {"slurm_partition": Resource("slurm_partition", "'long'"), "constraint": "ib"}
    assert in_effect(SlurmKeys(), {}, of_jobs) == SlurmKeys(partition="long", constraint="ib")
    assert in_effect(SlurmKeys(partition="short"), {}, of_jobs).partition == "short"
    assert in_effect(SlurmKeys(constraint="milan"), {"constraint": "rome"}, of_jobs).constraint == "rome"


def test_notes_are_of_one_sweep(tmp_path):
    folder = StudyFolder(tmp_path)
    assert known_nodes.begun_on(folder, "chase-1/2") == known_nodes.refused_by(folder, "milan") == []
    for node in ("n2", "n1"):
        known_nodes.note_attempt(folder, "chase-1/2", node)
        known_nodes.note_refusal(folder, "milan", node)
    assert known_nodes.begun_on(folder, "chase-1/2") == ["n2", "n1"]
    assert known_nodes.refused_by(folder, "milan") == ["n1", "n2"]
    known_nodes.forget(folder)
    assert known_nodes.begun_on(folder, "chase-1/2") == known_nodes.refused_by(folder, "milan") == []
