"""Time of members' processes that left their family, and how reasons are counted."""

import pytest

from castmates.protocols import Sample
from castmates.runner.rounds.ledger import summary
from castmates.runner.rounds.ledger_load import FORGIVEN, Load, Readings, Surroundings
from castmates.runner.rounds.slices import Slice
from castmates.runner.rounds.window import Window
from castmates.study.budget_keys import Limits
from castmates.study.reasons import Reason, ReasonKind
from castmates.study.spec import UNMANAGED, Scene

SECONDS, OWN = 2.0, 1.5
LIMITS = Limits(steal=0.03, foreign=0.05, neighbours=0.1, swap=8)
LEAD = "lead@0,1"
SCENE = Scene(name="s", kind="corun", mix="m", active=(LEAD,), placebos=(), partition=UNMANAGED)
ALLOWED = 2 * LIMITS.foreign * SECONDS + FORGIVEN
A_LITTLE = 1e-6


def reasons(busy: dict[int, float], strays: dict[int, float]) -> list[str]:
    """What a window is rejected for: a lead of two CPUs that are so busy, with so much of it by its strays."""
    values = {(LEAD, "cpu_s"): OWN}
    for cpu in (0, 1):
        values |= {(f"cpu{cpu}", metric): 0.0 for metric in ("system_s", "irq_s", "steal_s")}
        values |= {(f"cpu{cpu}", "user_s"): busy[cpu]}
    values |= {(f"cpu{cpu}", "strays_s"): seconds for cpu, seconds in strays.items()}
    samples = [Sample(0, "any", *key, value) for key, value in values.items()]
    load = Load({LEAD: (0, 1)}, Surroundings((), ()), frozenset(), LIMITS)
    return list(map(str, load.reasons([LEAD], Readings(samples, SECONDS))))


@pytest.mark.parametrize("strays", [{0: 0.4}, {1: 0.4}, {0: 0.1, 1: 0.3}])
def test_strays_of_a_member_are_no_foreign_load(strays):
    allowed = OWN + 0.4 + ALLOWED
    assert reasons({0: allowed - A_LITTLE, 1: 0.0}, strays) == []
    (reason,) = reasons({0: allowed + A_LITTLE, 1: 0.0}, strays)
    assert reason.startswith("foreign load: others took 5% of CPUs 0-1")


def test_strays_elsewhere_excuse_nobody():
    assert len(reasons({0: OWN + 0.4 + ALLOWED - A_LITTLE, 1: 0.0}, {7: 0.4})) == 1


def test_a_reason_is_counted_by_its_kind():
    window = Window(SCENE, reasons=[Reason(ReasonKind.OUT_OF_ITS_GROUP, "lead@0: 2 threads")])
    window.watched = Slice(SCENE, 0, 1, watched=True)
    assert summary([window])["because"] == {"out of its group": {"corun": 1}}
