"""The intervals that are printed most cover as often as they claim: sequential tests, which err once in a thousand.

At full length, with everything that docs/methodology.md states of them: the files that this one imports, marked
`simulation`.
"""

from functools import cache

import numpy as np
import pytest

from castmates.analysis.effects.effects import estimate_controls, estimate_effects
from castmates.analysis.effects.system import mean_metrics
from castmates.analysis.partitions.attribution import estimate_attribution
from tests.sequential import covers, holds
from tests.unit import test_attribution_coverage as attribution
from tests.unit import test_coverage as effects
from tests.unit import test_system_coverage as system
from tests.unit.windows_maker import simulated

BATCH = 400  # studies, most often enough for an answer
MOST = 8  # batches


def counted(low, high, truth):
    """Count the intervals that hold the truth, and all; a study that lost a launch to rejections may have none."""
    low, high = np.asarray(low), np.asarray(high)
    there = np.isfinite(low)
    return int(((low <= truth) & (truth <= high))[there].sum()), int(there.sum())


@pytest.mark.parametrize(("machine", "launches"), effects.CONDITIONS)
def test_losses_and_controls(machine, launches):
    truth = effects.MACHINES[machine]

    @cache
    def campaigns(number):
        return simulated(truth, BATCH, launches, effects.ROUNDS, seed=100 * number + launches)

    def loss(number):
        found = estimate_effects(campaigns(number).plan, campaigns(number).windows, effects.MARGIN)
        alone = found[(found["baseline"] == "alone") & (found["role"] == "lead")]
        return counted(alone["slowdown_low"], alone["slowdown_high"], np.exp(truth.corun))

    def control(number):
        found = estimate_controls(campaigns(number).plan, campaigns(number).windows, effects.MARGIN)
        return counted(found["ratio_low"], found["ratio_high"], 1.0)

    def naive(number):
        share = effects.pooled_windows(campaigns(number), truth.corun, apart=True)
        return round(share * BATCH), BATCH

    assert covers(loss, MOST)
    assert covers(control, MOST)
    assert not holds(naive, 0.95, 0.90, MOST), "campaigns apart cover too seldom, or launches would not be needed"


@pytest.mark.parametrize(("how", "launches"), [("named", 3), ("chosen", 5)])
def test_parts_of_a_loss(how, launches):
    @cache
    def parts(number):
        studies = attribution.studies(launches, BATCH, seed=1000 * (number + 1))
        partition = "split-4" if how == "named" else None
        return estimate_attribution(studies.plan, studies.windows, 0.02, partition).set_index("part")

    for part, true in attribution.TRUE.items():
        assert covers(lambda n, part=part, true=true: of(parts(n).loc[part], true), MOST), part


def of(rows, true):
    return counted(rows["log_low"], rows["log_high"], true)


@pytest.mark.parametrize(("mix", "launches"), [("two, one loses", 3), ("four, graded", 5), ("four, graded", 10)])
def test_metrics_of_the_system(mix, launches):
    many, _ = system.truths(mix)

    @cache
    def metrics(number):
        dice = np.random.default_rng([number, launches])
        return mean_metrics(system.launch_rates(system.MIXES[mix], BATCH, launches, dice), ["study"]).set_index(
            "metric"
        )

    for metric in system.METRICS:
        rows = metrics(0).loc[metric]
        assert len(rows) == BATCH
        assert covers(
            lambda n, metric=metric: counted(
                metrics(n).loc[metric, "low"], metrics(n).loc[metric, "high"], many[metric]
            ),
            MOST,
        ), metric
