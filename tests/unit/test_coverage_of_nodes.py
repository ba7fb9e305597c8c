"""Launches on several nodes: the test for a difference keeps its level, and the interval covers what it should."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.effects.between_nodes import NODES, between_nodes, over_nodes
from castmates.analysis.effects.rows import BY
from castmates.analysis.statistics.intervals import over_launches

STUDIES = 2000  # rows of one table


def simulated(nodes, launches, spread, seed=1):
    """Studies with a true effect of 0: nodes scatter so much, in units of the scatter of launches."""
    dice = np.random.default_rng(seed)
    values = dice.normal(0, spread, (STUDIES, nodes, 1)) + dice.normal(0, 1, (STUDIES, nodes, launches))
    each = nodes * launches
    index = pd.MultiIndex.from_product(
        [range(STUDIES), ["modelled"], ["c"], range(each)], names=[*BY, "company", "block"]
    )
    columns = {"value": values.ravel(), "rounds": 3, "variance": 1.0, "successive": 1.0}
    hosts = pd.Series([f"n{number // launches}" for number in range(each)], dtype="object")
    hosts.index = pd.MultiIndex.from_product([["c"], range(each)], names=["company", "block"])
    return pd.DataFrame(columns, index=index), hosts


def analysed(nodes, launches, spread):
    values, hosts = simulated(nodes, launches, spread)
    return over_nodes(over_launches(values, BY).reset_index(), between_nodes(values, hosts, BY), BY)


@pytest.mark.parametrize(("nodes", "launches"), [(2, 5), (4, 6), (8, 3)])
def test_equal_nodes_are_rarely_called_different(nodes, launches):
    share = (analysed(nodes, launches, 0.0)["nodes_p"] < 0.05).mean()
    assert 0.035 <= share <= 0.065  # 5 %, three standard errors of 2,000 studies either way


@pytest.mark.parametrize(("spread", "least"), [(0.0, 0.94), (0.5, 0.91), (1.0, 0.915), (2.0, 0.93)])
def test_the_interval_covers_what_is_true_of_the_class(spread, least):
    table = analysed(4, 6, spread)
    assert ((table["log_low"] <= 0) & (table["log_high"] >= 0)).mean() >= least


def test_an_interval_over_launches_would_not():
    values, _ = simulated(4, 6, 1.0)
    table = over_launches(values, BY)
    assert ((table["log_low"] <= 0) & (table["log_high"] >= 0)).mean() < 0.75


def test_one_node_changes_nothing():
    values, hosts = simulated(1, 5, 0.0)
    plain = over_launches(values, BY).reset_index()
    table = over_nodes(plain, between_nodes(values, hosts, BY), BY)
    pd.testing.assert_frame_equal(table[list(plain)], plain, check_dtype=False)
    assert table["nodes_p"].isna().all()
    assert (table["nodes"] == 1).all()
    assert NODES not in set(table["over"])
