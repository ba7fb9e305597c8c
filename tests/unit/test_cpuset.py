"""An isolated cpuset partition as a knob, on folders that behave as the kernel's; tests/lab has the kernel itself."""

from types import SimpleNamespace

import pytest

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.cgroups import CPUS, EFFECTIVE, HANDED_DOWN, PARTITION
from castmates.machine.doctor.tools import cpuset_partition as row
from castmates.machine.journal import KINDS, Journal, Kind
from castmates.machine.prepare import Preparing, prepared
from castmates.runner.processes.isolation import isolated, refuse_several_cpus
from castmates.study.model import Prepare

ELSEWHERE = [9998, 9999]  # CPUs that this process does not have


@pytest.fixture
def group(tmp_path, monkeypatch):
    """A group whose parent has the controller and does not hand it down yet."""
    made = tmp_path / "parent/castmates.1"
    made.mkdir(parents=True)
    (made.parent / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (made.parent / HANDED_DOWN).write_text("memory\n")
    (made / CPUS).write_text("\n")
    (made.parent / EFFECTIVE).write_text("0-9999\n")
    (made / PARTITION).write_text("member\n")

    def hand_down(path, text):
        names = set(path.read_text().split())
        path.write_text(" ".join(sorted(names | {text[1:]} if text[0] == "+" else names - {text[1:]})) + "\n")

    monkeypatch.setattr(cgroups, "write_kernel", hand_down)
    return made


def contents(group):
    return [file.read_text().strip() for file in (group / CPUS, group / PARTITION, group.parent / HANDED_DOWN)]


def made(group, journal, say=str):
    return isolated(group, ELSEWHERE, journal, "a launch", say)


def test_it_is_made_recorded_and_put_back(group, tmp_path):
    journal = Journal(tmp_path / "state")
    with made(group, journal) as record:
        assert contents(group) == ["9998-9999", "isolated", "cpuset memory"]
        assert record["set"][str(group / CPUS)] == "9998-9999"
        assert record["before"][str(group / PARTITION)] == "member"
        assert len(journal.entries()) == 3
    assert contents(group) == ["0-9999", "member", "memory"]
    assert journal.entries() == []


def test_what_the_kernel_calls_invalid_is_refused_in_its_words_and_undone(group, tmp_path, monkeypatch):
    real, journal = KINDS["file"], Journal(tmp_path / "state")

    def write(path, value):
        real.write(path, "isolated invalid (Parent is not a partition root)" if value == "isolated" else value)

    monkeypatch.setitem(KINDS, "file", Kind(real.read, write))
    with pytest.raises(
        CastmatesError, match=r"'isolated' here: .*invalid \(Parent is not a partition root\).*leave it"
    ):
        made(group, journal).__enter__()
    assert contents(group) == ["0-9999", "member", "memory"]
    assert journal.entries() == []


def test_one_that_became_invalid_meanwhile_is_told_and_recorded(group, tmp_path):
    told = []
    with made(group, Journal(tmp_path / "state"), told.append) as record:
        (group / PARTITION).write_text("isolated invalid\n")
    assert record["lost"] == {str(group / PARTITION): "isolated invalid"}
    assert any("others may have run on the launch's CPUs" in sentence for sentence in told)


@pytest.mark.parametrize("spoil", [lambda group: (group.parent / "cgroup.controllers").write_text("cpu\n"), None])
def test_without_the_controller_or_groups_it_is_a_sentence(group, tmp_path, spoil):
    if spoil:
        spoil(group)
    with pytest.raises(CastmatesError, match=r"cpuset cannot be 'isolated' here: .*leave it out of 'machine.prepare'"):
        made(group if spoil else None, Journal(tmp_path / "state")).__enter__()
    assert contents(group) == ["", "member", "memory"]


def test_members_of_several_cpus_are_refused():
    def cohort(*cpus):
        return SimpleNamespace(members=[SimpleNamespace(workload="x", cpus=each) for each in cpus])

    refuse_several_cpus(cohort((0,), (1,)))
    with pytest.raises(CastmatesError, match="x has 2 CPUs, and in an isolated partition the kernel does not move"):
        refuse_several_cpus(cohort((0,), (1, 2)))


def test_the_knob_is_left_to_the_runner(tmp_path):
    wish = Prepare(cpuset="isolated")
    with prepared(wish, [0], Preparing("a launch", str, Journal(tmp_path / "state"), tmp_path)) as record:
        assert record == {}
    assert wish.words == {"cpuset": "isolated"}


@pytest.mark.parametrize(("found", "state"), [("", "yes"), ("no cgroup2", "no"), (None, "unknown")])
def test_the_doctor_has_a_row(found, state):
    assert row({"no_cpuset_partition": found}).state == state
