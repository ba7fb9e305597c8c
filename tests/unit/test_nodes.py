"""Launches on several nodes and processors: what each came to, what is stamped, and what the page shows."""

import pandas as pd
import pytest

from castmates.analysis.design.pilot import widths
from castmates.analysis.effects.effects import estimate_effects, estimate_nodes
from castmates.analysis.effects.pooling import UNKNOWN, launches_table, pooled, without_hosts, without_left_out
from castmates.analysis.effects.stamps import nodes_stamps
from tests.unit.partition_maker import atoms, made, windows

PLAN = made(atoms(), launches=9)
HOSTS = ("n1", "n2", "n3")


def on_nodes(slower=1.0, processors=("A", "A", "A")):
    """Windows of three nodes in turns; co-runs of the lead are so much slower on the last one."""
    table = windows(PLAN, noise=0.003)
    node = table["launch"] % 3
    table["host"] = node.map(dict(enumerate(HOSTS)))
    table["processor"] = node.map(dict(enumerate(processors)))
    hit = (table["host"] == "n3") & (table["kind"] == "corun") & (table["role"] == "lead")
    table.loc[hit, "rate"] /= slower
    return table


def of_pair(table):
    """The rows of the lead against alone without a partition."""
    ours = (table["role"] == "lead") & (table["baseline"] == "alone") & (table["partition"] == "unmanaged")
    return table[ours & (table["control"] == "")] if "control" in table else table[ours]


@pytest.mark.parametrize(("slower", "verdict"), [(1.0, "no difference seen"), (1.2, "nodes differ")])
def test_each_node_has_its_effect_and_a_difference_is_seen(slower, verdict):
    nodes = of_pair(estimate_nodes(PLAN, on_nodes(slower), 0.02))
    assert sorted(nodes["host"]) == list(HOSTS)
    assert set(nodes["verdict"]) == {verdict}
    assert (nodes["launches"] == 3).all()
    (effect,) = of_pair(estimate_effects(PLAN, on_nodes(slower), 0.02)).to_dict("records")
    assert (effect["nodes"], effect["over"]) == (3, "nodes")


def test_one_node_has_no_table():
    table = on_nodes()
    table["host"] = "n1"
    assert estimate_nodes(PLAN, table, 0.02).empty
    assert nodes_stamps(PLAN, [PLAN], estimate_nodes(PLAN, table, 0.02), 0) == []


def test_a_difference_and_what_was_left_out_are_stamped():
    table = on_nodes(1.2)
    nodes = estimate_nodes(PLAN, table, 0.02)
    ((name, (word, sentence), good),) = nodes_stamps(PLAN, [PLAN], nodes, 0)
    assert (name, word, good) == ("nodes", "nodes differ", True)
    assert "n1, n2 and n3 differ in" in sentence
    plan = PLAN.model_copy(update={"ignored_hosts": ("n3",)})
    kept = without_hosts(plan, table, plan.ignored_hosts)
    assert len(kept.launches) == 6
    left = estimate_nodes(kept, table, 0.02)
    ((_, (word, sentence), _),) = nodes_stamps(plan, [kept], left, 3)
    assert word == "2 nodes"
    assert "cover these two only" in sentence
    assert sentence.endswith("3 launches on n3 were left out of the analysis, and kept.")


def test_processors_are_never_pooled():
    table = on_nodes(1.2, ("A", "A", "B"))
    parts = pooled(PLAN, table)
    assert [(part.machine, len(part.launches)) for part in parts] == [("A", 6), ("B", 3)]
    rows = [of_pair(estimate_effects(part, table, 0.02)).iloc[0] for part in parts]
    assert rows[1]["slowdown"] / rows[0]["slowdown"] == pytest.approx(1.2, rel=0.02)
    ((name, (word, sentence), good), *_) = nodes_stamps(PLAN, parts, estimate_nodes(parts[0], table, 0.02), 0)
    assert (name, word, good) == ("machines", "2 processor models", False)
    assert "A (6 launches) and B (3 launches)" in sentence


def test_launches_that_are_not_measured_yet_are_planned_for_the_processor_that_measured_most():
    table = on_nodes(processors=("B", "A", "A"))
    parts = pooled(PLAN, table[table["launch"] <= 6])
    assert [(part.machine, len(part.launches)) for part in parts] == [("A", 4 + 3), ("B", 2)]


def test_launches_of_a_model_are_never_left_out_for_their_host():
    record = {
        "spec": {"study": "s", "cohort": {"id": "c", "members": [{"name": "a@0"}]}, "number": 1},
        "status": "measured", "started": "", "host": "n3",
    }  # fmt: skip
    for platform, left_out in (("measured", True), ("modelled", False)):
        assert launches_table([record | {"platform": platform}], ["n3"])["left_out"].tolist() == [left_out]


def test_a_processor_that_is_not_known_is_pooled_with_none_of_several():
    table = on_nodes(processors=("A", "B", ""))
    assert [part.machine for part in pooled(PLAN, table)] == ["A", "B", UNKNOWN]
    assert pooled(PLAN, on_nodes(processors=("A", "", ""))) == [PLAN]


def test_a_wanted_precision_is_that_of_the_interval_which_is_reported():
    table = on_nodes(1.2)
    (effect,) = of_pair(estimate_effects(PLAN, table, 0.02)).to_dict("records")
    found = widths(PLAN, table)[effect["mix"], "unmanaged"]
    assert found.half == pytest.approx((effect["slowdown_high"] - effect["slowdown_low"]) / 2)
    assert effect["freedom"] == 2  # three nodes
    aside = PLAN.model_copy(update={"ignored_hosts": ("n3",)})
    assert widths(aside, table)[effect["mix"], "unmanaged"].launches == 6


def test_what_is_left_out_of_the_windows_is_left_out_by_the_table_of_launches():
    launches = pd.DataFrame([{"cohort": one.cohort.id, "launch": one.number} for one in PLAN.launches])
    kept = without_left_out(PLAN, launches.assign(left_out=launches["launch"] % 3 == 2))
    assert [launch.number for launch in kept.launches] == [number for number in range(1, 10) if number % 3 != 2]
