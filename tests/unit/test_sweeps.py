"""Sweeps become cuts that the machine can make; what it cannot give is left out, with a note."""

import json
from itertools import pairwise

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.rdt.resctrl.wanted_schemata import rounded
from castmates.study import masks
from castmates.study.cache import Bandwidth
from castmates.study.model import Study
from castmates.study.partition_keys import CacheKeys
from castmates.study.partitions.amounts import Notes
from castmates.study.partitions.sweeps import Cut, cuts
from castmates.study.reading import read_keys
from tests.unit.caches import cache
from tests.unit.snapshots import assert_as_before


def made(*sweeps: dict, on=None, **keys) -> tuple[dict[str, Cut], list[str]]:
    notes = Notes()
    found = cuts(CacheKeys.model_validate({"sweeps": list(sweeps), **keys}), on or cache(), "study.yaml", notes)
    return {cut.name: cut for cut in found}, list(map(str, notes.remarks))


def hexes(found: dict[str, Cut]) -> dict[str, tuple[str | None, ...]]:
    def text(mask):
        return None if mask is None else f"{mask:03x}"

    return {name: (text(one.lead.mask), text(one.antagonists.mask), text(one.rest)) for name, one in found.items()}


def test_split_gives_the_lead_its_ways_and_the_antagonists_all_others():
    found, notes = made({"split": [1, 4, 11]}, on=cache(shareable=0))
    assert hexes(found) == {
        "split-1": ("001", "ffe", "ffe"),
        "split-4": ("00f", "ff0", "ff0"),
        "split-11": ("7ff", "800", "800"),
    }
    assert not notes


@pytest.mark.parametrize(("least", "names"), [(1, range(1, 12)), (2, range(2, 11)), (0, range(1, 12))])
def test_all_leaves_everybody_the_fewest_ways(least, names):
    found, _ = made({"split": "all"}, on=cache(least_ways=least))
    assert list(found) == [f"split-{ways}" for ways in names]


def test_positions_low_high_and_in_the_middle():
    found, notes = made({"split": 4, "position": ["low", "high", 3]}, on=cache(shareable=0))
    assert hexes(found) == {
        "split-4": ("00f", "ff0", "ff0"),
        "split-4-high": ("f00", "0ff", "0ff"),
        "split-4-at-3": ("078", "f80", "f80"),
    }
    assert notes == ["cache.sweeps.1: split-4-at-3 gives the others 5 ways, 7.5 MiB, the larger side."]
    found, notes = made({"split": 4, "position": 3}, on=cache(shareable=0, sparse=True))
    assert hexes(found) == {"split-4-at-3": ("078", "f87", "f87")}
    assert not notes


def test_the_lead_alone():
    found, _ = made({"lead_ways": "all"}, on=cache(4, shareable=0))
    assert hexes(found) == {
        "lead-1": ("001", None, "00e"),
        "lead-2": ("003", None, "00c"),
        "lead-3": ("007", None, "008"),
    }
    assert all(cut.alone for cut in found.values())
    whole, _ = made({"lead_ways": 4}, on=cache(4, shareable=0))
    assert hexes(whole) == {"lead-4": ("00f", None, None)}


def test_overlap_shares_the_ways_between_the_two_parts():
    found, _ = made({"overlap": [0, 2], "lead": 4, "position": ["low", "high"]}, on=cache(shareable=0))
    assert hexes(found) == {
        "overlap-0-lead-4": ("00f", "ff0", "ff0"),
        "overlap-0-lead-4-high": ("f00", "0ff", "0ff"),
        "overlap-2-lead-4": ("00f", "ffc", "ffc"),
        "overlap-2-lead-4-high": ("f00", "3ff", "3ff"),
    }
    half, _ = made({"overlap": "all"}, on=cache(5, shareable=0))
    assert list(half) == ["overlap-0-lead-2", "overlap-1-lead-2", "overlap-2-lead-2"]


def test_caps_lie_at_the_other_end():
    found, _ = made({"antagonist_cap": [1, 10]}, {"antagonist_cap": 10, "lead": 4}, on=cache(shareable=0))
    assert hexes(found) == {
        "cap-1": (None, "800", "800"),
        "cap-10": (None, "ffc", "ffc"),
        "cap-10-lead-4": ("00f", "ffc", "ffc"),
    }


@pytest.mark.parametrize(
    ("sweep", "name", "curve"),
    [
        ({"split": 4}, "split-4", "split"),
        ({"split": 4, "position": "high"}, "split-4-high", "split-high"),
        ({"split": 4, "position": 4}, "split-4-at-4", "split-at-4"),
        ({"split": 4, "bandwidth": {"antagonists": "40%"}}, "split-4-antagonists-mb40", "split-antagonists-mb40"),
        ({"split": 4, "name": "v-4"}, "v-4-split-4", "v-4-split"),
        ({"lead_ways": 4}, "lead-4", "lead"),
        ({"overlap": 2, "lead": 6}, "overlap-2-lead-6", "overlap-2-lead"),
        ({"overlap": 6, "lead": 6}, "overlap-6-lead-6", "overlap-6-lead"),
        ({"antagonist_cap": 4, "lead": 4}, "cap-4-lead-4", "cap-4-lead"),
        ({"masks": {"lead": "f", "antagonists": "ff0"}, "name": "mine-4"}, "mine-4", "mine-4"),
    ],
)
def test_a_curve_is_called_as_its_partitions_without_the_ways_of_the_lead(sweep, name, curve):
    assert [(cut.name, cut.curve) for cut in made(sweep)[0].values()] == [(name, curve)]


def test_too_many_partitions_are_refused_before_they_are_made():
    rates = dict.fromkeys(("lead", "antagonists", "a", "b", "c", "d", "e", "f"), "all")  # 99 to the power of 8
    one = cache(bandwidth=Bandwidth(unit="%", least=1, step=1, most=100))
    with pytest.raises(CastmatesError, match=r"'cache\.sweeps' make more than 500 partitions; name fewer values"):
        made({"bandwidth": rates}, on=one)


@given(st.integers(1, 100), st.integers(1, 20), st.integers(1, 20))
def test_a_throttle_is_planned_as_it_is_written(percent, least, step):
    one = cache(bandwidth=Bandwidth(unit="%", least=least, step=step, most=100))
    found, _ = made({"bandwidth": {"lead": [f"{percent}%", "all"]}}, on=one)
    for given_ in (cut.lead.bandwidth for cut in found.values()):
        assert given_ >= least
        assert rounded(given_, one) == given_


IO, ONLY_THROTTLES = {"on": cache()}, {"on": cache(0, shareable=0)}
TWO = {"on": cache(least_ways=2, shareable=0)}
RATES = {"bandwidth": {"antagonists": ["2 GB/s", "20%"]}}
MASKED = {"lead": "0x00f", "antagonists": "ff0", "stream": {"data": "0xf00"}}


PERCENT = {"bandwidth": {"antagonists": ["50%", "10%", "0.1%"]}}


def mbps(unit, step, most, peak=None):
    return {"on": cache(bandwidth=Bandwidth(unit=unit, least=step, step=step, most=most, peak=peak))}


def test_cuts_and_notes():
    """What each sweep becomes on a machine, mask by mask, and what is left out of it, are in the file of words."""
    without_size = {"on": cache(shareable=0, way_bytes=None)}
    of = {
        "a position that does not fit": ({"split": [4, 8], "position": 6},),
        "everybody else has everything": ({"split": 4}, {"rest": "all"}),
        "sizes": ({"split": ["25%", "6 MiB", "40%", "2-4/2"]},),
        "sizes of unknown ways": ({"split": ["6MiB", 2]}, without_size),
        "what the machine does not have": ({"split": [0, "4-14", 20]},),
        "nothing is left": ({"split": 40},),
        "sizes that cannot be given": ({"split": ["1%", "25%", f"{10**20}%", "90TiB"]},),
        "too few ways for everybody else": ({"lead_ways": [10, 11, 12]}, TWO),
        "too few ways, and everything anyway": ({"lead_ways": 11}, {**TWO, "rest": "all"}),
        "masks without antagonists": ({"masks": {"lead": "00f", "a": "ff0"}},),
        "masks with a rest": ({"masks": {"lead": "00f", "a": "ff0", "rest": "ff0"}},),
        "masks where there are none": ({"masks": {"lead": "f"}}, {"bandwidth": {"lead": "20%"}}, ONLY_THROTTLES),
        "the same under two names": ({"split": [4, 6]}, {"overlap": [0, 2]}, {}),
        "ways of I/O": ({"split": [4, 11]}, IO),
        "ways of I/O avoided": ({"split": "all"}, {**IO, "avoid_shared": True}),
        "throttles": ({"split": [2, 4], "bandwidth": {"antagonists": ["15%", "20%", "50%"], "lead": "90%"}}, IO),
        "all throttles": ({"bandwidth": {"stream": "all"}}, IO),
        "all throttles in GB/s": ({"bandwidth": {"lead": "all"}}, mbps("1/8 GB/s", 1, 2048)),
        "rates in MiB/s": (RATES, mbps("MiB/s", 10, 2**32 - 96)),
        "rates in GB/s": (RATES, mbps("1/8 GB/s", 1, 2048)),
        "per cent of a peak in GB/s": (PERCENT, mbps("1/8 GB/s", 1, 2048, 25.3e9)),
        "all per cent of a peak": ({"bandwidth": {"lead": "all"}}, mbps("1/8 GB/s", 1, 2048, 25e9)),
        "per cent of a peak in MiB/s": (PERCENT, mbps("MiB/s", 10, 2**32 - 96, 240e9)),
        "rates where throttles are steps": (RATES, IO),
        "rates without throttles": (RATES, {"on": cache(bandwidth=None)}),
        "code": ({"split": 4, "code": [1, 4]}, {"on": cache(cdp=True, shareable=0)}),
        "code without cdp": ({"split": 4, "code": 1},),
        "masks written out": ({"masks": MASKED},),
        "masks with a name": ({"name": "m", "masks": {**MASKED, "rest": "800"}, "bandwidth": {"stream": "20%"}}, IO),
    }
    assert_as_before("sweeps", {name: told(*sweeps) for name, sweeps in of.items()})


def told(*sweeps):
    """The cuts of sweeps and their notes; the last one may be keys of the machine and of the study."""
    *sweeps, keys = sweeps if not sweeps[-1] or {"on", "rest"} & sweeps[-1].keys() else (*sweeps, {})
    found, notes = made(*sweeps, **({"on": cache(shareable=0)} | keys))
    for name, cut in found.items():
        parts = {"lead": cut.lead, "antagonists": cut.antagonists, **cut.named}
        given_ = [(who, kind, getattr(part, kind)) for who, part in parts.items() for kind in ("mask", "code")]
        masks_ = [(who, kind, f"{mask:x}") for who, kind, mask in (*given_, ("rest", "mask", cut.rest)) if mask]
        rates = [(who, "bandwidth", part.bandwidth) for who, part in parts.items() if part.bandwidth]
        yield f"{name}: {', '.join(' '.join(map(str, each)) for each in [*masks_, *rates])}"
    yield from notes


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        ("1fff", "the mask 1fff is out of range: this cache has 12 ways, fff; write another mask."),
        ("5", "the mask 005 has holes"),
        ({"data": "1", "code": "2"}, "resctrl is not mounted with cdp here"),
    ],
)
def test_a_mask_that_the_kernel_would_refuse_is_an_error(mask, sentence):
    with pytest.raises(CastmatesError) as caught:
        made({"masks": {"lead": mask}})
    assert str(caught.value).startswith(f"study.yaml: 'cache.sweeps.1.masks.lead': {sentence}")
    assert "\n" not in str(caught.value)


def test_two_partitions_of_one_name_must_be_the_same():
    assert len(made({"split": [2, 4]}, {"split": [4, 6]})[0]) == 3
    with pytest.raises(CastmatesError, match=r"'cache.sweeps.2' makes a partition 'mine', and so does another sweep"):
        made({"name": "mine", "masks": {"lead": "1"}}, {"name": "mine", "masks": {"lead": "3"}})


MISTAKES = [
    {"split": 1, "overlap": 1}, {"name": "x"}, {"split": 1, "lead": 2}, {"masks": {"lead": "1"}, "position": "high"},
    {"overlap": 1, "position": 3}, {"antagonist_cap": 1, "code": 1},
    {"lead_ways": 1, "bandwidth": {"antagonists": "20%"}}, {"split": "many"}, {"split": [1, 2.5]}, {"split": "8-2"},
    {"split": []}, {"split": True}, {"split": 1, "position": "left"}, {"bandwidth": {"lead": 20}},
    {"masks": {"lead": 15}}, {"split": "9" * 400 + "%"}, {"bandwidth": {"lead": "9" * 400 + "%"}},
    {"masks": {"lead": "1", "rest": {"data": "2", "code": "4"}}}, 5, {"masks": 5}, {"masks": {"rest": "1"}},
    {"split": 1, "bandwidth": {"rest": "20%"}}, {"splits": 1},
]  # fmt: skip


def test_a_mistake_is_one_sentence():
    def said(sweep):
        with pytest.raises(CastmatesError) as caught:
            read_keys(Study, yaml.safe_dump({"name": "s", "cache": {"sweeps": [sweep]}}), "study.yaml")
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert_as_before("sweeps-mistakes", {json.dumps(sweep)[:100]: said(sweep) for sweep in MISTAKES})


AMOUNTS = st.one_of(
    st.just("all"), st.integers(0, 40), st.integers(1, 100).map("{}%".format), st.integers(1, 40).map("{}MiB".format)
)


@st.composite
def sweeps(draw):
    kind = draw(st.sampled_from(["split", "lead_ways", "overlap", "antagonist_cap"]))
    positions = ["low", "high", 1, 3] if kind in ("split", "lead_ways") else ["low", "high"]
    sweep = {kind: draw(st.lists(AMOUNTS, min_size=1, max_size=3)), "position": draw(st.sampled_from(positions))}
    if kind in ("overlap", "antagonist_cap") and draw(st.booleans()):
        sweep["lead"] = draw(AMOUNTS)
    if draw(st.booleans()) and (kind not in ("antagonist_cap",) or "lead" in sweep):
        sweep["code"] = draw(AMOUNTS)
    return sweep


@settings(max_examples=200, deadline=None)
@given(
    st.lists(sweeps(), min_size=1, max_size=3),
    st.integers(1, 20),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**20 - 1),
)
def test_every_mask_of_every_sweep_can_be_written(wanted, ways, least, sparse, cdp, avoid, shared):
    one = cache(ways, least_ways=min(least, ways), sparse=sparse, cdp=cdp, shareable=shared & (2**ways - 1))
    try:
        found, notes = made(*wanted, on=one, avoid_shared=avoid)
    except CastmatesError as problem:
        assert "make more than 500 partitions; name fewer values" in str(problem)  # noqa: PT017
        return
    for name, cut in found.items():
        parts = [cut.lead.mask, cut.lead.code, cut.antagonists.mask, cut.rest]
        for mask in (part for part in parts if part is not None):
            assert mask
            assert not masks.refusal(mask, one), (name, f"{mask:x}")
            assert not avoid or not mask & one.shareable
        if name.startswith("split-") and cut.antagonists.mask is not None:
            whole = (cut.lead.mask or 0) | (cut.lead.code or 0)
            assert not whole & cut.antagonists.mask
    assert all("\n" not in note for note in notes)
    assert len(set(found)) == len(found)


def test_sweeps_of_growing_ways_contain_each_other():
    found, _ = made({"split": "all"})
    grown = [cut.lead.mask for cut in found.values()]
    assert all(one & other == one for one, other in pairwise(grown))
