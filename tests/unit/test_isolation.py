"""The key `attribution.isolated`: what it may name, and the message where it names something else."""

from castmates.study.model import Study
from castmates.study.partitions.partitions import isolates, refusal
from castmates.study.reading import line_of, read_keys
from castmates.study.spec import Mix, Partition, Share
from castmates.terminal.preview import isolation
from tests.unit import partition_maker as maker
from tests.unit.modelled.makers import STUDY, project_of
from tests.unit.snapshots import assert_as_before
from tests.unit.snapshots import refusal as refused

SWEEPS = "cache: {sweeps: [{split: [4, 6]}, {overlap: 2, lead: 6}, {name: slow, bandwidth: {antagonists: 20%}}]}\n"


def written(tmp_path, text):
    (tmp_path / "study.yaml").write_text(text)
    return project_of(tmp_path, text)


def beside(*antagonists, apart=()):
    return Mix(name="x", identity="x", lead=maker.LEAD, antagonists=antagonists, apart=apart)


def test_disjoint_ways_isolate():
    four = maker.split(4)
    assert isolates(four, beside(maker.STREAM))
    assert not isolates(four, beside(maker.STREAM, "chase@2"))  # who has no share has all ways
    assert not isolates(four, beside())
    # Only who meets the lead on a cache counts.
    assert not isolates(four, beside(maker.STREAM, apart=(maker.STREAM,)))
    assert isolates(four, beside(maker.STREAM, "chase@2", apart=("chase@2",)))
    assert not isolates(maker.capped(2), beside(maker.STREAM))
    slow = Partition(name="slow", shares=(*four.shares[1:], Share(member=maker.LEAD, ways=15, bandwidth=50)))
    assert not isolates(slow, beside(maker.STREAM))
    code = Share(member=maker.LEAD, ways=0b11, code=0b110000)
    assert not isolates(Partition(name="code", shares=(code, four.shares[1])), beside(maker.STREAM))


def test_a_name_that_isolates_nobody_is_told_with_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = {}
    for named in ("split-8", "overlap-2-lead-6", "slow-antagonists-mb20"):
        project = written(tmp_path, f"{STUDY}{SWEEPS}attribution:\n  isolated: {named}\n")
        said[named] = refused(project.plan).replace(str(tmp_path), "")
    said["without sweeps"] = refused(read_keys, Study, "name: one\nattribution: {isolated: split-4}\n", "study.yaml")
    assert_as_before("isolation-mistakes", said)


def test_a_name_that_isolates_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = written(tmp_path, STUDY + SWEEPS + "attribution: {isolated: split-6}\n")
    assert project.plan().mixes
    assert project.study.attribution.isolated == "split-6"
    assert refusal("split-4", []) == ""  # nothing is shared out here: the plan's notes show it
    assert "add a sweep that gives them separate ways" in refusal("cap-2", maker.atoms(ways=(), caps=(2,)))


def test_the_line_of_a_key_is_found():
    text = "name: one\ncache:\n  monitor: 5\n"
    assert line_of(text, "s.yaml", ("cache", "monitor")) == 3
    assert line_of(text, "s.yaml", ("cache", "rest")) == 2
    assert line_of(text, "s.yaml", ("seed",)) == 1


def test_the_plan_says_how_losses_will_be_divided():
    cases = {
        "three partitions, five launches": (maker.atoms(), 5, None),
        "three partitions, four launches": (maker.atoms(), 4, None),
        "a partition that the study names": (maker.atoms(), 3, "split-4"),
        "one partition": (maker.atoms(ways=(2,)), 3, None),
        "none that isolates": (maker.atoms(ways=()), 5, None),
        "no partition": (maker.atoms()[:1], 5, None),
    }
    said = {name: isolation.line(maker.made(mixes, launches=n), named) for name, (mixes, n, named) in cases.items()}
    assert_as_before("isolation", said)
