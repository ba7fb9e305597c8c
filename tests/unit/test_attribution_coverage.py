"""Do the parts' intervals hold the truth as often as they claim, also where the isolating partition is chosen?

Simulated studies through the very functions that print the table. The worst case for a choice is that of partitions
which are all the same: whichever looks best does so by luck, and on the launches that chose it, luck would count.
`python -m tests.unit.test_attribution_coverage` prints the table of docs/methodology.md.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.analysis.partitions.attribution_parts import LINKS, PARTS
from castmates.results.columns.launch import WINDOWS
from castmates.study.spec import UNMANAGED, Plan
from tests.unit import partition_maker as maker
from tests.unit.printed_intervals import assert_told
from tests.unit.windows_maker import cohort, mix, one_slice, plan

pytestmark = pytest.mark.simulation  # test_coverage_early.py is quick
SEED, STUDIES, ROUNDS = 20261122, 1000, 2
WAYS = (2, 4, 6, 8)  # of the partitions, each of which isolates and is worth the same
LAUNCH, SCENE, WINDOW = 0.02, 0.015, 0.01  # standard deviations, in log terms
BUSY, OWN, DESPITE, CAPACITY = 0.02, 0.03, 0.02, 0.05
TOTAL = BUSY + OWN + DESPITE + CAPACITY
TRUE = {"total": TOTAL, "busy antagonist": BUSY, "not given back": OWN + DESPITE, "own smaller share": OWN,
        "despite own ways": DESPITE, "cache capacity": CAPACITY}  # fmt: skip
POINTS = 100 * (np.exp(CAPACITY - TOTAL) - np.exp(-TOTAL))
CASES = [("named", 3), ("named", 5), ("chosen", 5), ("chosen", 10)]


@dataclass(frozen=True)
class Studies:
    """Many studies of one mix side by side, as one plan and one table; and what they measured, scene by scene."""

    plan: Plan
    windows: pd.DataFrame
    kinds: list[tuple[str, str]]  # kind and partition of each scene
    logs: np.ndarray  # by study, launch, round and scene
    here: np.ndarray  # what these launches would show without the windows' noise; of one round


@cache
def studies(launches: int, count: int = STUDIES, seed: int = SEED) -> Studies:
    cohorts = [_cohort(number) for number in range(count)]
    rng = np.random.default_rng(seed + launches)
    scenes = [scene for scene in cohorts[0].scenes if scene.kind in ("alone", "placebo", "corun")]
    kinds = [(scene.kind, scene.partition) for scene in scenes]
    shape = (count, launches, ROUNDS, len(scenes))
    moved = rng.normal(0, SCENE, (count, launches, 1, len(scenes)))
    of_launches = rng.normal(0, LAUNCH, (count, launches, 1, 1))
    here = of_launches + moved - [_loss(*one) for one in kinds]
    logs = here + rng.normal(0, WINDOW, shape)
    study, launch, number, scene = np.indices(shape).reshape(4, -1)
    names = np.array([[_named(one, each) for each in scenes] for one in cohorts], dtype=object)
    columns = {
        "cohort": np.array([one.id for one in cohorts], dtype=object)[study],
        "launch": launch + 1,
        "round": number + 1,
        "scene": names[study, scene],
        "member": np.array([one.lead.name for one in cohorts], dtype=object)[study],
        "rate": np.exp(logs.ravel()),
        "valid": True,
        "platform": "measured",
    } | one_slice(True)
    return Studies(plan(cohorts, launches), pd.DataFrame(columns).reindex(columns=list(WINDOWS)), kinds, logs, here)


def _cohort(number):
    one = mix(f"lead{number:04d}@0", maker.STREAM)
    return cohort(f"c{number:04d}", one, *(maker.under(one, maker.split(ways, one.lead)) for ways in WAYS))


def _named(one, scene):
    """The scene of this cohort's mix."""
    return scene.name.replace("lead0000", one.lead.name.partition("@")[0])


def _loss(kind, partition):
    own = 0.0 if partition == UNMANAGED else OWN
    if kind == "corun":
        return BUSY + OWN + DESPITE if own else TOTAL
    return BUSY + own if kind == "placebo" else 0.0


@cache
def covered(how: str, launches: int) -> dict[str, float]:
    """By part the share of intervals that hold the truth; the capacity's mean bias and half-width."""
    simulated = studies(launches)
    found = estimate_attribution(simulated.plan, simulated.windows, 0.02, "split-4" if how == "named" else None)
    assert set(found["how"]) == {how}
    shares = {}
    for part, true in TRUE.items():
        own = found[found["part"] == part]
        assert len(own) == STUDIES
        shares[part] = _share(own["log_low"], own["log_high"], true)
    shares["points"] = _share(capacity(found)["points_low"], capacity(found)["points_high"], POINTS)
    shares["bias"] = float((capacity(found)["log"] - CAPACITY).mean())
    shares["half-width"] = float((capacity(found)["log_high"] - capacity(found)["log_low"]).median() / 2)
    return shares


def capacity(found):
    return found[found["part"] == "cache capacity"]


def _share(low, high, true):
    return float(((low <= true) & (true <= high)).mean())


@cache
def greedy(launches: int, partitions: int = 11) -> dict[str, float]:
    """Had all launches both chosen and estimated: many studies of such scenes, the best of all partitions in each."""
    rng = np.random.default_rng(SEED)
    noise = np.hypot(SCENE, WINDOW / np.sqrt(ROUNDS))
    together = rng.normal(0, noise, (20 * STUDIES, launches, 1))
    gains = CAPACITY + rng.normal(0, noise, (20 * STUDIES, launches, partitions)) - together
    best = gains.mean(axis=1).argmax(axis=1)
    own = np.take_along_axis(gains, best[:, None, None], axis=2)[..., 0]
    half = stats.t.ppf(0.975, launches - 1) * own.std(axis=1, ddof=1) / np.sqrt(launches)
    mean = own.mean(axis=1)
    return {
        "cache capacity": _share(mean - half, mean + half, CAPACITY),
        "bias": float((mean - CAPACITY).mean()),
        "half-width": float(np.median(half)),
    }


@pytest.mark.parametrize(("how", "launches"), CASES)
def test_every_part_covers_the_truth(how, launches):
    found = covered(how, launches)
    for part in (*TRUE, "points"):
        assert 0.922 <= found[part] <= 0.978, part  # four binomial errors
    assert abs(found["bias"]) < 0.002
    assert_told("attribution", "log_low", *(found[part] for part in TRUE))
    assert_told("attribution", "points_low", found["points"])


@pytest.mark.parametrize("launches", [3, 5])
def test_within_launch_every_part_covers_what_these_launches_show(launches):
    simulated = studies(launches)
    found = estimate_attribution(simulated.plan, simulated.windows, 0.02, "split-4").set_index("part")
    stages = [("alone", UNMANAGED), ("placebo", UNMANAGED), ("placebo", "split-4"), ("corun", "split-4"),
              ("corun", UNMANAGED)]  # fmt: skip
    logs = np.stack([simulated.here[:, :, 0, simulated.kinds.index(one)] for one in stages], axis=2).mean(axis=1)
    lost = dict(zip(LINKS, (logs[:, [0]] - logs).T, strict=True))
    for part in TRUE:
        start, end = (lost[stage] for stage in PARTS[part])
        own = found.loc[part]
        share = _share(own["within_low"].to_numpy(), own["within_high"].to_numpy(), end - start)
        points = 100 * (np.exp(-start) - np.exp(-end))
        of_points = _share(own["points_within_low"].to_numpy(), own["points_within_high"].to_numpy(), points)
        assert 0.922 <= min(share, of_points) <= max(share, of_points) <= 0.978, part
        assert_told("attribution", "within_low", share)
        assert_told("attribution", "points_within_low", of_points)


def test_a_choice_on_the_launches_that_estimate_would_count_luck_as_capacity():
    for launches in (5, 10):
        assert greedy(launches)["bias"] > 4 * abs(covered("chosen", launches)["bias"])
        assert greedy(launches)["cache capacity"] < 0.92


def table():
    """The figures as the rows of a Markdown table."""
    columns = [*TRUE, "points", "half-width", "bias"]
    rows = [f"| partition | launches | {' | '.join(columns)} |", "|" + " --- |" * (len(columns) + 2)]
    for how, launches in CASES:
        found = covered(how, launches)
        rows.append(f"| {how} | {launches} | {' | '.join(_cell(found.get(name)) for name in columns)} |")
    for launches in (5, 10):
        cells = " | ".join(_cell(greedy(launches).get(name)) for name in columns)
        rows.append(f"| chosen of 11 by the launches that estimate | {launches} | {cells} |")
    return "\n".join(rows)


def _cell(share):
    return "" if share is None else f"{100 * share:.1f}".replace("-0.0", "0.0")


if __name__ == "__main__":
    print(table())
