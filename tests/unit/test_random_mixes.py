"""Random mixes are balanced, drawn on and never drawn again; pairs, groups and tags stand for the mixes they should."""

from itertools import combinations, product

import pytest
import yaml

from castmates import project
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.study.drawing import Tally, Terms, drawn_on
from castmates.study.plan_text import plan_text
from tests.unit.snapshots import assert_as_before, refusal

WORKLOADS = [f"w{number}" for number in range(9)]
NINE = {
    name: {"model": {"compute": 0.001}, "unit": "step", "tags": ["odd"] if number % 2 else []}
    for number, name in enumerate(WORKLOADS)
}


def terms(count, least=1, most=3, leads=None, seed=7):
    names = [f"w{number}" for number in range(count)]
    return Terms(seed, names[:leads], names, range(least, most + 1))


@pytest.mark.parametrize(
    ("of", "count"),
    [
        (terms(4, 1, 1), 12), (terms(6, 1, 1), 20), (terms(6), 40), (terms(8), 40), (terms(8, 2, 2), 30),
        (terms(12), 40), (terms(12, 3, 3), 60), (terms(10), 100), (terms(20, 1, 7), 100),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_everyone_leads_and_meets_each_other_about_equally_often(of, count, seed):
    of = Terms(seed, of.leads, of.pool, of.sizes)
    mixes = drawn_on(of, (), count)
    tally = Tally.of(mixes)
    assert len({(mix.lead, mix.antagonists) for mix in mixes}) == count, "no mix twice"
    assert all(len({mix.lead, *mix.antagonists}) == 1 + len(mix.antagonists) for mix in mixes), "nobody twice in one"
    assert span(tally.leads[name] for name in of.leads) <= 1
    assert span(tally.sizes[size] for size in of.sizes) <= 1
    assert span(tally.met[frozenset(pair)] for pair in combinations(of.pool, 2)) <= 3
    assert span(tally.beside[pair] for pair in product(of.pool, repeat=2) if pair[0] != pair[1]) <= 3


def span(counts):
    counts = list(counts)
    return max(counts) - min(counts)


@pytest.mark.parametrize("leads", [None, 3])
def test_a_longer_list_begins_with_the_shorter_one_wherever_it_is_continued(leads):
    of = terms(8, leads=leads)
    whole = drawn_on(of, (), 40)
    for first in (1, 7, 39):
        assert drawn_on(of, (), first) == whole[:first]
        assert drawn_on(of, whole[:first], 40) == whole
    assert drawn_on(Terms(8, of.leads, of.pool, of.sizes), (), 40) != whole, "another seed"


def test_all_there_are_can_be_drawn_and_no_more():
    of = terms(5, 1, 2)
    assert len(drawn_on(of, (), of.most)) == len(drawn_on(of, (), 10_000)) == of.most == 5 * (4 + 6)


def test_who_is_new_catches_up():
    before = drawn_on(terms(6), (), 30)
    after = drawn_on(terms(7), before, 45)
    assert after[:30] == before
    tally = Tally.of(after)
    assert sum("w6" in (mix.lead, *mix.antagonists) for mix in after[30:]) >= 12
    assert span(tally.leads.values()) <= 2


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Writes a modelled study with these mixes, and returns its plan as a sweep would leave it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue/all.yaml").write_text(yaml.safe_dump({"workloads": NINE}))

    def planned(mixes, keep=True, cores=8, **keys):
        content = {"name": "s", "platform": "modelled", "catalogue": "catalogue", "controls": None, "mixes": mixes}
        content |= {"model": {"cores": cores}, "budget": {"launches": 3, "rounds": 2}, **keys}
        (tmp_path / "s.yaml").write_text(yaml.safe_dump(content))
        loaded = project.load("s.yaml")
        plan = loaded.plan()
        if keep:
            replace_text(loaded.results.plan_file, plan_text(plan))
        return plan

    return planned


def random(count=6, seed=7, names=WORKLOADS[:4], **keys):
    return {"random": {"count": count, "seed": seed, "from": names, "antagonists": [1, 2], **keys}}


def names_of(plan):
    return [mix.name for mix in plan.mixes]


def test_what_was_drawn_stays_whatever_the_study_becomes(study):
    first = study(random(6))
    names = first.sets[0].mixes
    assert sorted(names_of(first)) == sorted(names)
    assert len(names) == 6
    more = study(random(9, names=WORKLOADS[:5]))
    assert more.drawn.mixes[:6] == first.drawn.mixes
    assert more.sets[0].mixes[:6] == names
    fewer = study(random(4, names=WORKLOADS[:5]))
    assert fewer.drawn == more.drawn, "the list keeps what is not used now"
    assert fewer.sets[0].mixes == names[:4]
    study({"pairs": "others"}, leads=WORKLOADS[:2])
    assert study(random(9, names=WORKLOADS[:5])).sets == more.sets, "also while the study has no random mixes"


def test_a_workload_that_is_gone_sets_its_mixes_aside_until_it_is_back(study):
    first = study(random(6, names=WORKLOADS[:5]))
    without = study(random(6))
    gone = [mix for mix in first.drawn.mixes if "w4" in (mix.lead, *mix.antagonists)]
    assert gone
    assert without.drawn.mixes[:6] == first.drawn.mixes
    assert len(without.sets[0].mixes) == 6
    assert not any("w4" in name for name in names_of(without))
    assert any("set aside" in note and str(len(gone)) in note for note in map(str, without.notes))
    assert study(random(6, names=WORKLOADS[:5])).sets[0].mixes == first.sets[0].mixes


def test_another_seed_does_not_draw_again(study):
    study(random(6))
    with pytest.raises(CastmatesError, match=r"^s.yaml: 'mixes.random.seed' is 8, but the 6 mixes in .* with 7, .*$"):
        study(random(6, seed=8))


def test_launches_of_the_first_mixes_are_the_same_when_more_are_drawn(study):
    few = {launch.path: launch for launch in study(random(6)).launches}
    many = study(random(12), keep=False)
    measured = {mix.identity for launch in few.values() for mix in launch.cohort.mixes}
    assert measured <= {mix.identity for mix in many.mixes}


def test_a_machine_without_a_place_leaves_out_what_has_more_antagonists(study):
    plan = study(random(12), cores=2)
    assert {len(mix.antagonists) for mix in plan.mixes} == {1}
    assert {len(each.antagonists) for each in plan.left_out} == {2}
    assert len(plan.mixes) + len(plan.left_out) == 12
    assert plan.drawn == study(random(12), keep=False).drawn, "the list does not depend on the machine"
    with pytest.raises(CastmatesError, match="cores"):
        study(random(12), cores=1)


def test_copies_fill_the_machine_and_leave_the_draw_as_it_is(study):
    one, three = study(random(6, copies=1)), study(random(6, copies=3), cores=8)
    assert three.drawn == one.drawn
    assert sorted(names_of(three)) == sorted(three.sets[0].mixes)
    tripled = ["+".join([mix.lead, *sorted(mix.antagonists * 3)]) for mix in three.drawn.mixes]
    assert sorted(tripled) == sorted(names_of(three))
    small = study(random(6, copies=3), cores=6)
    assert {len(mix.antagonists) for mix in small.mixes} == {3}, "seven do not fit"
    assert {len(each.antagonists) for each in small.left_out} == {6}


def test_leads_are_those_of_the_study_where_it_has_some(study):
    plan = study(random(6, names=["odd"]), leads=["w0"])
    assert set(names_of(plan)) == set(plan.sets[0].mixes), "leads alone are crossed with nobody"
    assert {mix.lead for mix in plan.drawn.mixes} == {"w0"}
    assert {name for mix in plan.drawn.mixes for name in mix.antagonists} == {"w1", "w3", "w5", "w7"}


@pytest.mark.parametrize(
    ("mixes", "expected"),
    [
        ({"pairs": "all"}, {"w0+w0", "w0+w1", "w1+w0", "w1+w1"}),
        ({"pairs": "others"}, {"w0+w1", "w1+w0"}),
        ({"groups": [["w2", "w3"], ["w4", "w5", "w4"]]},
         {"w2+w3", "w3+w2", "w4+w5", "w5+w4", "w4+w4"} | {"w0+w1"}),
        ({"groups": [["odd"]]}, {f"w{a}+w{b}" for a in (1, 3, 5, 7) for b in (1, 3, 5, 7) if a != b} | {"w0+w1"}),
        ({"pairs": "others", "list": [{"lead": "w8", "antagonists": ["w1", "w2"]}]},
         {"w0+w1", "w1+w0", "w8+w1+w2"}),
    ],
)  # fmt: skip
def test_pairs_and_groups_are_all_to_all(study, mixes, expected):
    plan = study(mixes, leads=["w0"], antagonists=["w1"])
    assert set(names_of(plan)) == expected
    assert plan.drawn is None


def test_what_cannot_be_is_one_sentence(study):
    of = [
        random(names=["od"]), random(count=50), random(antagonists=[1, 4]), {"random": {"count": 3}}, {"pairs": "all"},
        {"groups": [["w1"]]}, random(antagonists=[3, 1]), {"randm": {"count": 3}}, {},
        [{"lead": "w0", "antagonist": ["w1"]}], {"list": [{"lead": "w0", "antagonists": ["w1"], "cuont": 2}]},
    ]  # fmt: skip
    assert_as_before("random-mixes", {str(mixes): refusal(study, mixes) for mixes in of})
