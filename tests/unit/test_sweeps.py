"""Sweeps become cuts that the machine can make; what it cannot give is left out, with a note."""

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


def test_a_position_that_does_not_fit_is_left_out():
    found, notes = made({"split": [4, 8], "position": 6}, on=cache(shareable=0))
    assert list(found) == ["split-4-at-6"]
    assert notes[1] == "cache.sweeps.1.split: 8 from way 6 on left out: there are 12 ways."


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


def test_everybody_else_may_have_everything():
    assert hexes(made({"split": 4}, rest="all")[0]) == {"split-4": ("00f", "ff0", None)}


def test_sizes_become_ways_and_say_so():
    found, notes = made({"split": ["25%", "6 MiB", "40%", "2-4/2"]}, on=cache(shareable=0))
    assert list(found) == ["split-3", "split-4", "split-5", "split-2"]
    assert notes == ["cache.sweeps.1.split: 40% becomes 5 ways, 7.5 MiB, the nearest that there is."]
    found, notes = made({"split": ["6MiB", 2]}, on=cache(shareable=0, way_bytes=None))
    assert list(found) == ["split-2"]
    assert "does not show how large a way is" in notes[0]


def test_what_the_machine_does_not_have_is_left_out_and_said():
    found, notes = made({"split": [0, "4-14", 20]}, on=cache(shareable=0))
    assert list(found) == [f"split-{ways}" for ways in range(4, 12)]
    assert notes == ["cache.sweeps.1.split: 0,12-14,20 left out: from 1 to 11 ways can be given here."]
    found, notes = made({"split": 40}, on=cache(shareable=0))
    assert not found
    assert notes[-1] == "cache.sweeps.1: nothing is left of this sweep on this machine."


def test_a_size_that_cannot_be_given_is_said_once():
    found, notes = made({"split": ["1%", "25%", f"{10**20}%", "90TiB"]}, on=cache(shareable=0))
    assert list(found) == ["split-3"]
    assert len(notes) == 3
    assert notes[0] == "cache.sweeps.1.split: 1% left out: it is 0, and from 1 to 11 ways can be given here."
    assert notes[1].startswith(f"cache.sweeps.1.split: {10**20}% left out: it is 12")


def test_everybody_else_who_gets_too_few_ways_gets_all_and_that_is_said():
    found, notes = made({"lead_ways": [10, 11, 12]}, on=cache(least_ways=2, shareable=0))
    assert [cut.rest for cut in found.values()] == [0xC00, None, None]
    assert notes == [
        "cache.sweeps.1: lead-11 leaves too few ways for everybody else on the machine, who therefore has all, the "
        "lead's too."
    ]
    assert not made({"lead_ways": 11}, on=cache(least_ways=2, shareable=0), rest="all")[1]


def test_masks_without_one_for_the_antagonists_leave_everybody_else_all_ways():
    found, notes = made({"masks": {"lead": "00f", "a": "ff0"}}, on=cache(shareable=0))
    assert [cut.rest for cut in found.values()] == [None]
    assert notes == [
        "cache.sweeps.1.masks: everybody else on the machine has all ways, because the role antagonists has no mask; "
        "write one for 'rest' if they should not."
    ]
    assert not made({"masks": {"lead": "00f", "a": "ff0", "rest": "ff0"}}, on=cache(shareable=0))[1]


def test_masks_on_a_machine_that_only_throttles_are_left_out():
    found, notes = made({"masks": {"lead": "f"}}, {"bandwidth": {"lead": "20%"}}, on=cache(0, shareable=0))
    assert list(found) == ["lead-mb20"]
    assert notes[0] == "cache.sweeps.1.masks: left out: this machine has no masks of the last-level cache."


def test_the_same_partition_under_two_names_is_told():
    found, notes = made({"split": [4, 6]}, {"overlap": [0, 2]}, on=cache(shareable=0))
    assert len(found) == 4
    assert notes == ["cache: overlap-0-lead-6 gives everybody the same as split-6; both are measured."]


def test_too_many_partitions_are_refused_before_they_are_made():
    rates = dict.fromkeys(("lead", "antagonists", "a", "b", "c", "d", "e", "f"), "all")  # 99 to the power of 8
    one = cache(bandwidth=Bandwidth(unit="%", least=1, step=1, most=100))
    with pytest.raises(CastmatesError, match=r"'cache\.sweeps' make more than 500 partitions; name fewer values"):
        made({"bandwidth": rates}, on=one)


def test_ways_that_io_uses_are_told_or_avoided():
    found, notes = made({"split": [4, 11]})
    assert notes == [
        "cache: I/O fills the ways 0xc00 too; they are given to the lead in 1 and to the antagonists in 2 of the 2 "
        "partitions ('cache.avoid_shared: true' leaves them out).",
        "cache: split-11 cuts through the ways 0xc00 that I/O fills too: some processors give these ways together "
        "only, which the kernel does not show, so no such partition is chosen as isolating.",
    ]
    found, notes = made({"split": "all"}, avoid_shared=True)
    assert list(found) == [f"split-{ways}" for ways in range(1, 10)]
    assert not notes
    assert hexes(found)["split-4"] == ("00f", "3f0", "3f0")


def test_throttles_multiply_and_round_up():
    found, notes = made({"split": [2, 4], "bandwidth": {"antagonists": ["15%", "20%", "50%"], "lead": "90%"}})
    assert list(found) == [f"split-{ways}-antagonists-mb{rate}-lead-mb90" for ways in (2, 4) for rate in (20, 50)]
    assert "cache.sweeps.1.bandwidth.antagonists: 15% becomes 20 %, the next that there is." in notes
    found, _ = made({"bandwidth": {"stream": "all"}})
    assert [cut.named["stream"].bandwidth for cut in found.values()] == list(range(10, 100, 10))


@given(st.integers(1, 100), st.integers(1, 20), st.integers(1, 20))
def test_a_throttle_is_planned_as_it_is_written(percent, least, step):
    one = cache(bandwidth=Bandwidth(unit="%", least=least, step=step, most=100))
    found, _ = made({"bandwidth": {"lead": [f"{percent}%", "all"]}}, on=one)
    for given_ in (cut.lead.bandwidth for cut in found.values()):
        assert given_ >= least
        assert rounded(given_, one) == given_


def test_throttles_in_other_units():
    intel = cache(bandwidth=Bandwidth(unit="MiB/s", least=10, step=10, most=2**32 - 96))
    amd = cache(bandwidth=Bandwidth(unit="1/8 GB/s", least=1, step=1, most=2048))
    sweep = {"bandwidth": {"antagonists": ["2 GB/s", "20%"]}}
    assert "all left out: it means steps of per cent" in made({"bandwidth": {"lead": "all"}}, on=amd)[1][0]
    found, notes = made(sweep, on=intel)
    assert [cut.antagonists.bandwidth for cut in found.values()] == [1910]
    assert notes == [
        "cache.sweeps.1.bandwidth.antagonists: 2 GB/s becomes 1910 MiB/s, the next that there is.",
        "cache.sweeps.1.bandwidth.antagonists: 20% left out: this machine throttles bandwidth in MiB/s.",
    ]
    assert [cut.antagonists.bandwidth for cut in made(sweep, on=amd)[0].values()] == [16]
    found, notes = made(sweep, on=cache(bandwidth=None))
    assert not found
    assert notes[0] == "cache.sweeps.1.bandwidth: left out: this machine cannot throttle memory bandwidth."


def test_code_and_data_of_the_lead():
    found, _ = made({"split": 4, "code": [1, 4]}, on=cache(cdp=True, shareable=0))
    assert {name: (f"{cut.lead.mask:03x}", f"{cut.lead.code:03x}") for name, cut in found.items()} == {
        "split-4-code-1": ("00e", "001")
    }
    found, notes = made({"split": 4, "code": 1}, on=cache(shareable=0))
    assert not found
    assert "resctrl is not mounted with cdp here" in notes[0]


def test_masks_written_out():
    masked = {"lead": "0x00f", "antagonists": "ff0", "stream": {"data": "0xf00"}}
    found, _ = made({"masks": masked}, on=cache(shareable=0))
    (cut,) = found.values()
    assert cut.name == "lead-00f-antagonists-ff0-stream-f00"
    assert (cut.lead.mask, cut.antagonists.mask, cut.named["stream"].mask, cut.rest) == (0xF, 0xFF0, 0xF00, 0xFF0)
    named, _ = made({"name": "mine", "masks": {**masked, "rest": "800"}, "bandwidth": {"stream": "20%"}})
    assert list(named) == ["mine-stream-mb20"]
    assert named["mine-stream-mb20"].rest == 0x800
    assert named["mine-stream-mb20"].named["stream"].mask == 0xF00


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


@pytest.mark.parametrize(
    ("sweep", "expected"),
    [
        (
            {"split": 1, "overlap": 1},
            "expected one of split, lead_ways, overlap, antagonist_cap, masks, or 'bandwidth'",
        ),
        (
            {"name": "x"},
            "expected one of split, lead_ways, overlap, antagonist_cap, masks, or 'bandwidth', and not neither",
        ),
        ({"split": 1, "lead": 2}, "expected 'lead' beside 'overlap' or 'antagonist_cap' only"),
        ({"masks": {"lead": "1"}, "position": "high"}, "expected no 'position' beside masks or bandwidth alone"),
        ({"overlap": 1, "position": 3}, "expected the positions low and high only"),
        ({"antagonist_cap": 1, "code": 1}, "expected no 'code' without ways of the lead's own"),
        ({"lead_ways": 1, "bandwidth": {"antagonists": "20%"}}, "expected no throttle for anybody but the lead"),
        ({"split": "many"}, "'cache.sweeps.1.split' is 'many', but expected ways such as 4 or 2-8, a size such as 25%"),
        ({"split": [1, 2.5]}, "expected ways such as 4 or 2-8, a size such as 25%"),
        ({"split": "8-2"}, "expected ways such as 4 or 2-8, a size such as 25%"),
        ({"split": []}, "expected ways such as 4 or 2-8, a size such as 25%"),
        ({"split": True}, "expected ways such as 4 or 2-8, a size such as 25%"),
        ({"split": 1, "position": "left"}, "expected low, high, the number of a way (the first is 0), or a list"),
        ({"bandwidth": {"lead": 20}}, "expected a bandwidth such as 20% or 2000 MB/s"),
        ({"masks": {"lead": 15}}, 'expected a way mask in hexadecimal digits and in quotes, such as "0x00f"'),
        ({"split": "9" * 400 + "%"}, "expected ways such as 4 or 2-8, a size such as 25%"),
        ({"bandwidth": {"lead": "9" * 400 + "%"}}, "expected a bandwidth such as 20% or 2000 MB/s"),
        (
            {"masks": {"lead": "1", "rest": {"data": "2", "code": "4"}}},
            "expected one mask for the rest of the machine, not code and data apart",
        ),
        (5, "'cache.sweeps.1' is 5, but expected keys with values"),
        ({"masks": 5}, "'cache.sweeps.1.masks' is 5, but expected keys with values"),
        ({"masks": {"rest": "1"}}, "expected a mask or a throttle for some member"),
        ({"split": 1, "bandwidth": {"rest": "20%"}}, "expected no throttle for the rest of the machine"),
        ({"splits": 1}, "unknown key 'cache.sweeps.1.splits', did you mean 'split'?"),
    ],
)
def test_a_mistake_is_one_sentence(sweep, expected):
    text = yaml.safe_dump({"name": "s", "cache": {"sweeps": [sweep]}})
    with pytest.raises(CastmatesError) as caught:
        read_keys(Study, text, "study.yaml")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


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
