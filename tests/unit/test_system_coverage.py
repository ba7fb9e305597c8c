"""Do the intervals of the system's metrics hold what they claim? Simulated launches, through the very functions.

`python -m tests.unit.test_system_coverage` prints the table of docs/methodology.md.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.effects.system import METRICS, launch_metrics, mean_metrics
from tests.unit.printed_intervals import assert_told

pytestmark = pytest.mark.simulation  # test_coverage_early.py is quick
SEED = 20261123
STUDIES = 1000
MANY = 200_000  # launches that show the truth
COMMON, OWN = 0.01, 0.015  # sd between launches, of all members and of each; log units
MIXES = {"two, one loses": (0.0, 0.25), "two alike": (0.1, 0.1), "four, graded": (0.02, 0.1, 0.2, 0.4)}
CONDITIONS = [(mix, launches) for mix in MIXES for launches in (3, 5, 10)]
ALIKE = ("unfairness", "max slowdown", "Jain")  # noise alone moves these where members are alike


def launch_rates(losses, studies, launches, rng):
    """Members' slowdowns: a row per study, launch and member."""
    shape = (studies, launches, len(losses))
    logs = np.array(losses) + rng.normal(0, COMMON, (*shape[:2], 1)) + rng.normal(0, OWN, shape)
    study, launch, _ = np.indices(shape).reshape(3, -1)
    table = {"study": study, "cohort": "c", "launch": launch, "slowdown": np.exp(logs).ravel()}
    return launch_metrics(pd.DataFrame(table), ["study", "cohort", "launch"])


@cache
def truths(mix):
    """What launches show on average, and what the mean slowdowns give."""
    losses = MIXES[mix]
    launched = launch_rates(losses, 1, MANY, np.random.default_rng(SEED))
    many = mean_metrics(launched, ["study"]).set_index("metric")["value"]
    exact = launch_metrics(pd.DataFrame({"launch": 1, "slowdown": np.exp(losses)}), ["launch"]).iloc[0]
    return many, exact


@cache
def covered(mix, launches):
    """By metric: how often the interval holds each of the two truths."""
    many, exact = truths(mix)
    values = launch_rates(MIXES[mix], STUDIES, launches, np.random.default_rng(SEED + launches))
    found = mean_metrics(values, ["study"])
    shares = {}
    for name, truth in (("launches", many), ("mean slowdowns", exact)):
        value = found["metric"].map(truth)
        holds = (found["low"] <= value) & (value <= found["high"])
        shares[name] = holds.groupby(found["metric"]).mean()
    return shares


@pytest.mark.parametrize(("mix", "launches"), CONDITIONS)
def test_intervals_hold_what_launches_show_on_average(mix, launches):
    shares = covered(mix, launches)["launches"]
    skewed = ALIKE if mix == "two alike" else ()
    for metric in METRICS:
        assert shares[metric] >= (0.88 if metric in skewed else 0.93), metric
        assert shares[metric] <= 0.975, metric
    assert_told("system", "low", *shares)


@pytest.mark.parametrize("mix", ["two, one loses", "four, graded"])
def test_where_members_differ_they_hold_the_metric_of_the_mean_slowdowns_too(mix):
    assert (covered(mix, 5)["mean slowdowns"] >= 0.93).all()


def test_where_members_are_alike_noise_alone_looks_unfair():
    many, exact = truths("two alike")
    assert exact["unfairness"] == 1
    assert many["unfairness"] > 1.01
    assert covered("two alike", 10)["mean slowdowns"]["unfairness"] < 0.5


def table():
    """The figures as the rows of a Markdown table."""
    rows = [f"| mix | launches | {' | '.join(METRICS)} |", "|" + " --- |" * (len(METRICS) + 2)]
    for mix, launches in CONDITIONS:
        shares = covered(mix, launches)
        cells = (f"{100 * shares['launches'][m]:.0f} / {100 * shares['mean slowdowns'][m]:.0f}" for m in METRICS)
        rows.append(f"| {mix} | {launches} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
