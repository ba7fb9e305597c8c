"""Launches on several nodes: the test for a difference keeps its level, and the interval covers what it should."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.core import NODES, between, over_levels, these
from castmates.analysis.keys import ROW
from castmates.analysis.statistics.intervals import over_launches

STUDIES = 2000  # rows of one table
ERROR = 3 * np.sqrt(0.95 * 0.05 / STUDIES)  # three standard errors of a share
SPREADS = (0.0, 0.3, 0.5, 1.0, 2.0)  # of nodes, in units of the scatter of launches
SHAPES = [(4, 4, 4), (6, 6, 6, 6), (3,) * 8, (2, 2, 1), (9, 1, 2), (12, 3, 3, 2)]  # launches on each node


def simulated(sizes, spread, seed):
    """Studies with a true effect of 0 on the class, and what is true on average of these nodes."""
    dice = np.random.default_rng(seed)
    own = dice.normal(0, spread, (STUDIES, len(sizes)))
    node = np.repeat(np.arange(len(sizes)), sizes)
    values = own[:, node] + dice.normal(0, 1, (STUDIES, len(node)))
    index = pd.MultiIndex.from_product(
        [range(STUDIES), ["modelled"], ["c"], range(len(node))], names=[*ROW, "cohort", "launch"]
    )
    columns = {"value": values.ravel(), "rounds": 3, "variance": 1.0, "successive": 1.0}
    hosts = pd.Series([f"n{number}" for number in node], dtype="object")
    hosts.index = pd.MultiIndex.from_product([["c"], range(len(node))], names=["cohort", "launch"])
    return pd.DataFrame(columns, index=index), hosts, own.mean(axis=1)


def analysed(sizes, spread, seed=1):
    values, hosts, own = simulated(sizes, spread, seed)
    table = over_levels(over_launches(values, ROW).reset_index(), {NODES: between(values, hosts, NODES, ROW)}, ROW)
    return table.sort_values(ROW[0], ignore_index=True), own


def covered(table, truth):
    return ((table["low"] <= truth) & (table["high"] >= truth)).mean()


@pytest.mark.parametrize("sizes", [(5, 5), (6, 6, 6, 6), (3,) * 8, (12, 3, 3, 2)])
def test_equal_nodes_are_rarely_called_different(sizes):
    table, _ = analysed(sizes, 0.0)
    assert (table["nodes_p"] < 0.05).mean() == pytest.approx(0.05, abs=ERROR)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("sizes", SHAPES)
def test_the_interval_covers_what_is_true_of_the_class(sizes, spread, seed):
    table, _ = analysed(sizes, spread, seed)
    assert set(table["over"]) == {NODES}
    assert covered(table, 0.0) >= 0.95 - ERROR
    rejected = (table["p_value"] < 0.05).mean()
    assert rejected == pytest.approx(1 - covered(table, 0.0), abs=1e-9)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("sizes", [(10, 10), (3, 2), (4, 1)])
def test_the_interval_of_two_nodes_covers_what_is_true_of_these(sizes, spread):
    table, own = analysed(sizes, spread)
    assert set(table["over"]) == {these(NODES)}
    assert covered(table, own) == pytest.approx(0.95, abs=ERROR)


def test_an_interval_over_launches_would_cover_the_class_too_seldom():
    values, _, _ = simulated((6, 6, 6, 6), 1.0, 1)
    assert covered(over_launches(values, ROW), 0.0) < 0.75


def test_a_launch_on_each_of_two_nodes_has_no_interval():
    table, _ = analysed((1, 1), 0.0)
    assert table[["low", "high", "p_value", "nodes_p"]].isna().all(axis=None)


def test_one_node_changes_nothing():
    values, hosts, _ = simulated((5,), 0.0, 1)
    plain = over_launches(values, ROW).reset_index()
    table = over_levels(plain, {NODES: between(values, hosts, NODES, ROW)}, ROW)
    pd.testing.assert_frame_equal(table[list(plain)], plain, check_dtype=False)
    assert table["nodes_p"].isna().all()
    assert set(table["over"]) == {"launches"}
    assert (table["nodes"] == 1).all()
