from types import SimpleNamespace

import pytest

from castmates.runner.rounds.lead_in import PASSES, LeadIn, lead_in

SECOND = 1_000_000_000


class Stage:
    """Two members, whose rates and occupancy take these values one pass after the other; the last ones stay."""

    def __init__(self, rates, held=(None,)):
        self.rates, self.held = list(rates), list(held)
        self.cast = {name: SimpleNamespace(records=[]) for name in ("lead@0", "other@1")}
        self.evictors = {"evictor:2": 2000}  # of caches of 1000 bytes
        self.hardware = SimpleNamespace(occupancies=self.occupancies)
        self.now, self.ran = 0, []

    def occupancies(self):
        held = self.held.pop(0) if len(self.held) > 1 else self.held[0]
        return {"lead@0": held, "other@1": None}

    def exchange(self, names):
        self.ran.append(tuple(names))

    def forget_beats(self):
        pass

    def look_after(self):
        pass

    def now_ns(self):
        return self.now

    def rest_until(self, t_ns):
        self.now = t_ns

    def read_beats(self):
        rate = self.rates.pop(0) if len(self.rates) > 1 else self.rates[0]
        for process in self.cast.values():
            process.records = [(number * SECOND, int(number * rate)) for number in range(5)] if rate else []


SCENES = [SimpleNamespace(active=("lead@0", "other@1"), placebos=())]


@pytest.mark.parametrize(
    ("rates", "held", "expected"),
    [
        ([1000], [None], LeadIn(2, True)),  # two passes alike
        ([250, 500, 1000], [None], LeadIn(4, True)),
        ([1000, 500, 980, 510], [None], LeadIn(3, True)),  # what varies to and fro does not go on changing
        ([1000, 900, 800, 700], [None], LeadIn(5, True)),  # others take the room that one had at first
        ([2**number * 100 for number in range(20)], [None], LeadIn(PASSES, False)),
        ([1000], [100, 200, 300], LeadIn(4, True)),  # the cache fills while rates seem steady
        ([0], [100 * number for number in range(20)], LeadIn(PASSES, False)),  # steps are too long to see a rate
    ],
)
def test_it_is_repeated_until_nothing_changes_any_more(rates, held, expected):
    assert lead_in(Stage(rates, held), SCENES, SECOND, emptied=True) == expected


def test_where_nothing_was_emptied_every_scene_runs_once():
    stage = Stage([250, 500, 1000])
    assert lead_in(stage, SCENES * 2, SECOND, emptied=False) == LeadIn(1, None)
    assert stage.ran == [("lead@0", "other@1")] * 2
    assert stage.now == 2 * SECOND
