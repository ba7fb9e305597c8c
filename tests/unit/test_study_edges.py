"""Edges of what a study comes to: the largest caps, exact units of the throttle, and what a confirmation leaves out."""

import pytest

from castmates import project
from castmates.analysis.statistics.power import half_width, launches_for
from castmates.errors import CastmatesError
from castmates.study.cache import Bandwidth
from castmates.study.confirmation import MOST_NAMED, confirming, mix_under
from castmates.study.model import Placement
from castmates.study.partition_keys import CacheKeys
from castmates.study.partitions.amounts import Notes, rate_text, rates_from
from castmates.study.partitions.sweeps import cuts
from castmates.study.placement.refusals import place
from castmates.study.placement.search import Need
from castmates.study.placement.seats import rules_of
from tests.unit.caches import cache
from tests.unit.machines import layout

EIGHTHS = Bandwidth(unit="1/8 GB/s", least=1, step=1, most=80)
MODELLED = "config/studies/modelled-cat-sweep.yaml"


@pytest.fixture(scope="module")
def parent():
    loaded = project.load(MODELLED)
    return loaded.study, loaded.plan()


def test_rates_become_eighths_of_a_gigabyte_without_a_rest():
    notes = Notes()
    assert rates_from(["2 GB/s", "125 MB/s", "10 GB/s"], EIGHTHS, "key", notes) == [16, 1, 80]
    assert not notes.remarks


MEBIBYTES = Bandwidth(unit="MiB/s", least=10, step=10, most=2**32 - 96)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("2000 MiB/s", 2000), ("2 GiB/s", 2048 + 2), ("2000 MB/s", 1910), ("1 MB/s", 10), ("2.5 Gi", None)],
)
def test_mebibytes_are_no_megabytes(text, rate):
    if rate is None:
        with pytest.raises(ValueError, match="a bandwidth such as"):
            rate_text(text)
    else:
        assert rates_from([rate_text(text)], MEBIBYTES, "key", Notes()) == [rate]


def test_a_rate_above_the_most_is_left_out_and_those_behind_it_stay():
    notes = Notes()
    assert rates_from(["11 GB/s", "1 GB/s", "1 GB/s"], EIGHTHS, "key", notes) == [8]
    assert list(map(str, notes.remarks)) == ["key: 11 GB/s left out: the most here is 10 GB/s."]


def test_all_caps_end_one_way_below_the_cache_and_lie_where_they_are_wanted():
    keys = CacheKeys.model_validate({"sweeps": [{"antagonist_cap": "all", "position": ["low", "high"]}]})
    found = {cut.name: cut.antagonists.mask for cut in cuts(keys, cache(4, shareable=0), "study.yaml", Notes())}
    assert found == {"cap-1": 0x8, "cap-1-high": 0x1, "cap-2": 0xC, "cap-2-high": 0x3, "cap-3": 0xE, "cap-3-high": 0x7}


def test_antagonists_take_fresh_cores_before_they_share_one_with_each_other():
    where = layout("synthetic-xeon-2s")
    rules = rules_of(Placement(smt="share"), where, "study.yaml")
    (seats,) = place(rules, [Need("x+a+b+c", "x", (1, 1, 1, 1))], where, "study.yaml")
    lead, *others = ({where.by_id[cpu].core for cpu in seat.cpus} for seat in seats)
    assert others[0] == lead
    assert not others[1] & others[2]


def test_a_confirmation_measures_its_mix_and_nobody_elses_antagonists(parent):
    study, plan = parent
    asked = study.model_copy(update={"leads": ["vision"], "antagonists": ["database"]})
    fresh = confirming(asked, plan, mix_under(plan, "vision+database", "split-3"), 4)
    assert (fresh.leads, fresh.antagonists) == ([], [])
    assert [(rule.lead, rule.antagonists) for rule in fresh.mixes] == [("vision", ["database"])]


def test_partitions_that_are_not_named_are_counted(parent):
    _, plan = parent
    there = {each.name for mix in plan.mixes if mix.name == "vision+database" for each in mix.partitions}
    with pytest.raises(CastmatesError, match=rf" and {len(there) - MOST_NAMED} more\.$"):
        mix_under(plan, "vision+database", "split-99")


def test_the_most_launches_are_still_allowed_and_one_more_is_not():
    wanted = half_width(1e-4, 7)
    assert launches_for(1e-4, wanted, most=7) == 7
    assert launches_for(1e-4, wanted, most=6) is None
