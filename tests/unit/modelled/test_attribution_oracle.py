"""The modelled machine knows what each part of a loss is: the table's intervals hold it as often as they should."""

import numpy as np
import pytest
from scipy import stats

from castmates.analysis.effects.verdicts import effect_verdicts
from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.analysis.partitions.attribution_parts import CAPACITY
from tests.unit.modelled.makers import STUDY, project_of
from tests.unit.modelled.test_oracle import log_rates, renamed, table, truths

STUDIES, SEED = 400, 20261122
SWEEPS = "cache: {sweeps: [{split: [4, 6, 8]}]}\n"
STAGES = {"alone": "alone", "placebo": "placebo:2", "unmanaged": "corun:ranking+flood"}


def stage(name, partition):
    """The scene behind a stage of the chain."""
    under = {"placebo@mask": f"placebo:2@{partition}", "isolated": f"corun:ranking+flood@{partition}"}
    return STAGES.get(name) or under[name]


@pytest.fixture(scope="module")
def modelled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oracle")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        plan = project_of(folder, STUDY + SWEEPS).plan()
    launch, launches = plan.launches[0], len(plan.launches)
    true, rng = truths(plan), np.random.default_rng(SEED)
    cohorts = [renamed(launch.cohort, number) for number in range(STUDIES)]
    logs = log_rates(true, launch.cohort, launch.design.model.noise, rng, STUDIES, launches, launch.design.rounds)
    mixes = tuple(mix for one in cohorts for mix in one.mixes)
    numbered = tuple(each.model_copy(update={"cohort": one}) for one in cohorts for each in plan.launches)
    everything = plan.model_copy(update={"mixes": mixes, "launches": numbered})
    lead = launch.cohort.lead.name
    return (
        everything,
        table(cohorts, logs),
        {scene: np.log(rates[lead]) for scene, rates in true.items() if lead in rates},
    )


@pytest.mark.parametrize(("named", "how"), [(None, "chosen"), ("split-6", "named")])
def test_parts_hold_what_the_model_knows(modelled, named, how):
    plan, windows, logs = modelled
    found = estimate_attribution(plan, windows, 0.02, named)
    assert set(found["how"]) == {how}
    assert set(found["launches"]) == ({3} if how == "chosen" else {5})
    ends = [
        [logs[stage(row.start, row.partition)], logs[stage(row.end, row.partition)], logs["alone"]]
        for row in found.itertuples()
    ]
    start, end, alone = np.array(ends).T
    points = 100 * (np.exp(start - alone) - np.exp(end - alone))
    found = found.assign(
        holds=(found["log_low"] <= start - end) & (start - end <= found["log_high"]),
        points_hold=(found["points_low"] <= points) & (points <= found["points_high"]),
    )
    least, most = (bound / STUDIES for bound in stats.binom.interval(0.9999, STUDIES, 0.95))
    for part, own in found.groupby("part"):
        assert len(own) == STUDIES
        assert least <= own["holds"].mean() <= most, part
        assert least <= own["points_hold"].mean() <= most, part


def test_the_model_prefers_the_partition_that_is_chosen(modelled):
    """Where one partition is truly far better than the others, every study chooses it, and it gives something back.

    Each of these mixes is a study, so that its verdict is that of a family of one.
    """
    plan, windows, logs = modelled
    found = estimate_attribution(plan, windows, 0.02)
    best = max(("split-4", "split-6", "split-8"), key=lambda name: logs[stage("isolated", name)])
    assert set(found["partition"]) == {best}
    capacity = found[found["part"] == CAPACITY]
    verdicts = effect_verdicts(
        capacity.assign(p_holm=capacity["p_value"]).rename(
            columns={"log": "mean", "log_low": "low", "log_high": "high"}
        ),
        0.02,
    )
    assert verdicts.count("loss") > 0.99 * STUDIES
