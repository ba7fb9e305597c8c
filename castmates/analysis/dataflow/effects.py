"""Where the time comes from that a step takes longer beside others, along the path of the schedule; parts add up to it.

A trace beside others is compared with the one of its launch and round in which the lead is alone, as operations are. An
operation's time on the path is its share of steps on the path, times what it takes in those steps. So its change is
that of what it takes, at the mean share (`slower`), and that of its share, at the mean time (`path`): both together are
the change exactly. An operation that one side never has on its path has no time there: all of its change is `path`.
Launches are the unit; intervals are those between launches.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from castmates.analysis.core import in_order, launch_means
from castmates.analysis.dataflow.join import FETCH, NODE
from castmates.analysis.dataflow.summary import PathTraces
from castmates.analysis.dataflow.work import Graph
from castmates.analysis.keys import EFFECT, LAUNCH, MIX, ROUND, SAME_ROUND
from castmates.analysis.operations.per_trace import lead_alone
from castmates.analysis.statistics.intervals import columns_of, estimate

STEP = "step"
SLOWER, PATH = "slower", "path"
# Parts in the order of a step; `slower` and `path` are what nodes compute.
PARTS = {
    "before": "before_ms",
    "batch": "batch_ms",
    SLOWER: "",
    PATH: "",
    "other": "other_ms",
    "idle": "idle_ms",
    "after": "after_ms",
}
ENTERS, LEAVES, STAYS = "enters", "leaves", "stays"
MORE_STEPS = 0.5  # an operation enters or leaves where it is on the path in so much larger a share of the steps


def path_effects(paths: PathTraces) -> pd.DataFrame:
    """A row per mix, partition and part, and one for the whole step; the parts add up to it."""
    both, changed = _pairs(paths)
    if both.empty:
        return pd.DataFrame()
    computed = changed.groupby([*EFFECT, *ROUND], as_index=False)[["slower_ms", "path_ms"]].sum()
    both = both.merge(computed, "left", [*EFFECT, *ROUND]).fillna({"slower_ms": 0.0, "path_ms": 0.0})
    parts = [_part(both, STEP, both["step_ms_alone"], both["step_ms"])]
    for part, column in PARTS.items():
        if column:
            parts.append(_part(both, part, both[f"{column}_alone"], both[column]))
        else:
            parts.append(_part(both, part, None, both[f"{part}_ms"]))
    every = pd.concat(parts, ignore_index=True)
    found = estimate(every, [*EFFECT, "part"])
    table = launch_means(every, [*EFFECT, "part"], ["alone_ms", "ms"]).assign(traces=found["rounds"])
    table = table.assign(**columns_of(found, "difference_ms", ends="difference")).reset_index()
    return in_order(table, [*EFFECT, "part"], part={name: number for number, name in enumerate([STEP, *PARTS])})


def path_changes(paths: PathTraces) -> pd.DataFrame:
    """A row per mix, partition and operation that changes on the path."""
    both, changed = _pairs(paths)
    if both.empty:
        return pd.DataFrame()
    what = ["alone_on_schedule_path", "on_schedule_path", "slower_ms", "path_ms"]
    named = [*EFFECT, "operation", "type", "direction"]
    rounds = both.groupby([*EFFECT, *LAUNCH]).size().rename("rounds")
    launches = changed.groupby([*named, *LAUNCH], as_index=False)[what].sum().join(rounds, on=[*EFFECT, *LAUNCH])
    launches[what] = launches[what].div(launches["rounds"], axis=0)  # a round without the operation counts as nothing
    count = rounds.groupby(EFFECT).size().rename("launches")
    table = launches.groupby(named, as_index=False)[what].sum().join(count, on=EFFECT)
    table[what] = table[what].div(table["launches"], axis=0)
    more = table["on_schedule_path"] - table["alone_on_schedule_path"]
    table["change"] = np.select([more >= MORE_STEPS, more <= -MORE_STEPS], [ENTERS, LEAVES], STAYS)
    size = table[["slower_ms", "path_ms"]].abs().sum(axis=1)
    table = table[size > 0].assign(size=size)
    table = table.sort_values([*EFFECT, "size"], ascending=[*[True] * len(EFFECT), False], ignore_index=True)
    return table.drop(columns="size")


def _pairs(paths: PathTraces) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Traces beside others, each with the one alone; and of each pair the change of every operation on the path."""
    traces = paths.traces
    if traces.empty:
        return traces, traces
    whole = traces[traces["reason"] == ""]
    alone, beside = whole[lead_alone(whole)], whole[whole["kind"] == "corun"]
    both = beside.merge(alone.drop(columns=["scene", "kind", *MIX]), on=SAME_ROUND, suffixes=("", "_alone"))
    both = both[both["threads"] == both["threads_alone"]]
    columns = [*SAME_ROUND, *NODE]
    operations = paths.operations
    one = operations[lead_alone(operations)]
    key = [*EFFECT, *ROUND]
    pairs = both[[*SAME_ROUND, *MIX]]
    before = pairs.merge(one[[*columns, "on_schedule_path", "path_ms"]], on=SAME_ROUND)
    after = operations[operations["kind"] == "corun"][[*columns, *MIX, "on_schedule_path", "path_ms"]]
    after = pairs.merge(after, on=[*SAME_ROUND, *MIX])
    found = before.merge(after, "outer", [*key, *NODE], suffixes=("_alone", ""))
    numbers = [f"{name}{side}" for name in ("on_schedule_path", "path_ms") for side in ("_alone", "")]
    found[numbers] = found[numbers].fillna(0.0)
    return both, _changes(found)


def _part(both: pd.DataFrame, part: str, alone: "pd.Series[float] | None", ms: "pd.Series[float]") -> pd.DataFrame:
    """The difference of each pair; a part that is none of a step has its difference alone."""
    rows = both[[*EFFECT, *ROUND]].assign(part=part)
    if alone is None:
        return rows.assign(alone_ms=np.nan, ms=np.nan, difference=ms)
    return rows.assign(alone_ms=alone, ms=ms, difference=ms - alone)


def _changes(found: pd.DataFrame) -> pd.DataFrame:
    """Of each pair of traces and operation: how its time on the path changes, and why."""
    share, share_alone = found["on_schedule_path"], found["on_schedule_path_alone"]
    time, time_alone = found["path_ms"], found["path_ms_alone"]
    each = time / share.where(share > 0)  # what it takes in steps in which it is on the path
    each_alone = time_alone / share_alone.where(share_alone > 0)
    each, each_alone = each.fillna(each_alone), each_alone.fillna(each)
    computes = found["type"] != FETCH  # the wait for the batch is a part by itself
    slower = ((share + share_alone) / 2 * (each - each_alone)).fillna(0.0).where(computes, 0.0)
    path = (time - time_alone).where(computes, 0.0) - slower
    return found.assign(
        slower_ms=slower,
        path_ms=path,
        alone_on_schedule_path=share_alone,
    )


# A graph as boxes that fit on a picture: nodes without a call are passed through, and scopes put together; pure.

WIDEST = 14  # boxes of a row
NUMBERS = re.compile(r"_?\d+")
Key = tuple[str, str, str]  # name, direction, and what keeps boxes of one name apart
GRADIENTS = ("gradient_tape/", "gradients/")


@dataclass
class Box:
    """What is drawn as one box."""

    name: str
    direction: str
    nodes: list[int] = field(default_factory=list)
    level: int = 0  # row of the picture, from 0
    needs: set[int] = field(default_factory=set)  # boxes


def boxes(table: pd.DataFrame, graph: Graph, shown: "Sequence[bool] | np.ndarray", most: int) -> list[Box]:
    """The nodes that are shown as boxes: each by itself where `most` is as many as there are.

    Else those of one row and type whose names differ in numbers alone are one; and where boxes are still more than
    `most`, they are put together by scope, as deep as fits.
    """
    names, directions = table["name"].astype("str").tolist(), table["direction"].astype("str").tolist()
    types = table["type"].astype("str").tolist()
    chosen = [node for node in range(graph.count) if shown[node]]
    levels = _levels(graph, set(chosen))
    deepest = max((name.count("/") for name in names), default=0) + 1
    keys: dict[int, Key] = {node: (names[node], directions[node], "") for node in chosen}
    if most < graph.count:
        keys = {
            node: (NUMBERS.sub("*", names[node]), directions[node], f"{types[node]} {levels[node]}") for node in chosen
        }
    for depth in range(deepest, 0, -1):
        if len(set(keys.values())) <= most:
            break
        keys = {node: (scope_of(names[node], depth), directions[node], "") for node in chosen}
    return _boxes(graph, keys, levels, names)


def scope_of(name: str, depth: int) -> str:
    """The first scopes of a name, without what marks gradients."""
    for prefix in GRADIENTS:
        name = name.removeprefix(prefix)
    parts = name.split("/")
    return "/".join(parts[:-1][:depth]) or parts[0]


def _boxes(graph: Graph, keys: dict[int, Key], levels: list[int], names: Sequence[str]) -> list[Box]:
    places: dict[Key, int] = {}
    found: list[Box] = []
    box_of = {}
    for node, key in keys.items():
        place = places.setdefault(key, len(found))
        if place == len(found):
            found.append(Box(key[0], key[1]))
        found[place].nodes.append(node)
        box_of[node] = place
    for box in found:
        box.level = int(np.median([levels[node] for node in box.nodes]))
        if len(box.nodes) == 1:
            box.name = names[box.nodes[0]]
    _into_rows(found)
    for node, sources in _needs(graph, box_of):
        found[node].needs |= sources - {node}
    return found


def _into_rows(found: Sequence[Box]) -> None:
    """Number the rows without gaps; what is too wide for one goes on in the next."""
    rows: dict[int, list[Box]] = {}
    for box in found:
        rows.setdefault(box.level, []).append(box)
    row = 0
    for level in sorted(rows):
        for first in range(0, len(rows[level]), WIDEST):
            for box in rows[level][first : first + WIDEST]:
                box.level = row
            row += 1


def _needs(graph: Graph, box_of: dict[int, int]) -> list[tuple[int, set[int]]]:
    """By box, the boxes that it needs, directly or through nodes that are not shown."""
    carried: list[set[int]] = []
    found = []
    for node, needs in enumerate(graph.needs):
        sources: set[int] = set().union(*(carried[each] for each in needs.tolist()))
        if node in box_of:
            found.append((box_of[node], sources))
            sources = {box_of[node]}
        carried.append(sources)
    return found


def _levels(graph: Graph, chosen: set[int]) -> list[int]:
    """How many shown nodes the longest chain to a node has before it; one that needs none stands above who needs it."""
    level: list[int] = []
    first: list[bool] = []  # whether it needs no shown node
    for needs in graph.needs:
        level.append(max((level[each] + (each in chosen) for each in needs.tolist()), default=0))
        first.append(all(first[each] and each not in chosen for each in needs.tolist()))
    latest = [0] * graph.count
    for node in range(graph.count - 1, -1, -1):
        after = graph.needed_by[node].tolist()
        latest[node] = min(
            (level[each] - 1 if each in chosen else latest[each] for each in after), default=max(level, default=0)
        )
        if first[node] and node in chosen:
            level[node] = max(level[node], latest[node])
    return level


def columns(found: Sequence[Box], sweeps: int = 6) -> list[float]:
    """By box: its place from left to right, in boxes; rows are ordered by where neighbours are, again and again."""
    rows: dict[int, list[int]] = {}
    for place, box in enumerate(found):
        rows.setdefault(box.level, []).append(place)
    neighbours: list[set[int]] = [set(box.needs) for box in found]
    for place, box in enumerate(found):
        for other in box.needs:
            neighbours[other].add(place)
    at = [0.0] * len(found)
    for places in rows.values():
        _spread(places, at)
    for sweep in range(sweeps):
        for level in sorted(rows, reverse=bool(sweep % 2)):
            wanted = {
                place: float(np.mean([at[each] for each in neighbours[place]])) if neighbours[place] else at[place]
                for place in rows[level]
            }
            rows[level].sort(key=lambda place: wanted[place])
            _spread(rows[level], at)
    return at


def _spread(places: Sequence[int], at: list[float]) -> None:
    """Put a row's boxes side by side, around the middle."""
    for number, place in enumerate(places):
        at[place] = number - (len(places) - 1) / 2
