"""Whether members filled more ways than their masks have, by the occupancy in windows of emptied caches."""

import pytest

from castmates.protocols import ProcessorReadings, Sample
from castmates.runner.rounds.processor_record import OCCUPANCY, past_masks
from castmates.runner.rounds.slices import Slice
from castmates.runner.rounds.stage import Emptied
from castmates.runner.rounds.window import Window
from castmates.study.cache import Cache
from castmates.study.spec import Scene, Share

WAY = 1 << 20
NAME = "stream@1"
CACHE = Cache(
    domains=(0,), ways=12, way_bytes=WAY, least_ways=1, sparse=False, shareable=0, groups=15, cdp=False, bandwidth=None,
    events=(OCCUPANCY,), monitored_groups=8,
)  # fmt: skip
READINGS = ProcessorReadings("", "", {}, caches={NAME: [0]}, cache=CACHE)
SCENE = Scene(
    name="x", kind="corun", mix="", active=(NAME,), placebos=(), partition="split-8",
    shares=(Share(member=NAME, ways=0xF00),),
)  # fmt: skip


def window(ways, emptied):
    made = Window(SCENE, emptied=emptied)
    made.watched = Slice(SCENE, 0, 10, samples=[Sample(5, "monitor", NAME, OCCUPANCY, ways * WAY)], watched=True)
    return made


@pytest.mark.parametrize(
    ("ways", "emptied", "found"),
    [
        (4.6, Emptied(1, 0.0, 1.0), {}),
        (6.0, Emptied(1, 0.0, 1.0), {"split-8": {NAME: (6.0, 4)}}),
        (6.0, Emptied(1, 0.15, 1.0), {}),  # 1.8 of 12 ways were not emptied
        (6.0, Emptied(1, None, 1.0), {}),
        (6.0, Emptied(0, None, 0.0), {}),  # nobody could empty them: lines stay where it had more ways before
        (6.0, None, {}),
    ],
)
def test_members_fill_past_masks_only_where_what_was_left_of_before_is_known(ways, emptied, found):
    assert past_masks([window(ways, emptied)] * 3, READINGS) == found
