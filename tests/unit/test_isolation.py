"""The key `attribution.isolated`: what it may name, and the message where it names something else."""

import pytest

from castmates.errors import CastmatesError
from castmates.study.model import Study
from castmates.study.partitions.partitions import isolates, refusal
from castmates.study.reading import line_of, read_keys
from castmates.study.spec import Mix, Partition, Share
from castmates.terminal.preview import isolation
from tests.unit import partition_maker as maker
from tests.unit.modelled.makers import STUDY, project_of

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


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("split-8", "but 'cache.sweeps' makes no such partition of a mix on this machine; name one that keeps them "
         "apart (split-4, split-6)"),
        ("overlap-2-lead-6", "under which lead and antagonists share ways, or one of them is throttled; name one"),
        ("slow-antagonists-mb20", "or one of them is throttled"),
    ],
)  # fmt: skip
def test_a_name_that_isolates_nobody_is_told_with_its_line(tmp_path, monkeypatch, named, sentence):
    monkeypatch.chdir(tmp_path)
    project = written(tmp_path, f"{STUDY}{SWEEPS}attribution:\n  isolated: {named}\n")
    with pytest.raises(CastmatesError) as caught:
        project.plan()
    said = str(caught.value)
    line = (STUDY + SWEEPS).count("\n") + 2
    assert said.startswith(f"{tmp_path / 'study.yaml'}, line {line}: 'attribution.isolated' is '{named}', ")
    assert sentence in said
    assert "\n" not in said


def test_a_name_that_isolates_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = written(tmp_path, STUDY + SWEEPS + "attribution: {isolated: split-6}\n")
    assert project.plan().mixes
    assert project.study.attribution.isolated == "split-6"
    assert refusal("split-4", []) == ""  # nothing is shared out here: the plan's notes show it
    assert "add a sweep that gives them separate ways" in refusal("cap-2", maker.atoms(ways=(), caps=(2,)))


def test_a_name_without_sweeps_is_refused_when_the_study_is_read():
    with pytest.raises(CastmatesError, match=r"study.yaml, line 2: 'attribution' is .*'cache.sweeps', which would"):
        read_keys(Study, "name: one\nattribution: {isolated: split-4}\n", "study.yaml")


def test_the_line_of_a_key_is_found():
    text = "name: one\ncache:\n  monitor: 5\n"
    assert line_of(text, "s.yaml", ("cache", "monitor")) == 3
    assert line_of(text, "s.yaml", ("cache", "rest")) == 2
    assert line_of(text, "s.yaml", ("seed",)) == 1


@pytest.mark.parametrize(
    ("mixes", "launches", "named", "sentence"),
    [
        (maker.atoms(), 5, None, "The loss of every mix is divided under the best of 3 partitions, chosen on 2 of 5 "
         "launches and estimated on the others; naming one in 'attribution.isolated' leaves all of them for the "
         "estimate."),
        (maker.atoms(), 4, None, "To choose one of 3 isolating partitions takes 5 launches, and 4 are planned; "),
        (maker.atoms(), 3, "split-4", "The loss of every mix is divided under split-4, which the study names; all"),
        (maker.atoms(ways=(2,)), 3, None, "The loss of every mix is divided under the only partition that isolates;"),
        (maker.atoms(ways=()), 5, None, "How much cache ways give back stays unknown: no partition gives"),
        (maker.atoms()[:1], 5, None, ""),
    ],
)  # fmt: skip
def test_the_plan_says_how_losses_will_be_divided(mixes, launches, named, sentence):
    said = isolation.line(maker.made(mixes, launches=launches), named)
    assert said.startswith(sentence)
    assert bool(said) == bool(sentence)
