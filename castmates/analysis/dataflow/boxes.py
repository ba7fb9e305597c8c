"""A graph as boxes that fit on a picture: nodes without a call are passed through, and scopes put together; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from castmates.analysis.dataflow.graph import Graph

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
    """The nodes that are shown, each as a box, or by scope where these are more than `most`: as deep as fits."""
    names, directions = table["name"].astype("str").tolist(), table["direction"].astype("str").tolist()
    chosen = [node for node in range(graph.count) if shown[node]]
    deepest = max((name.count("/") for name in names), default=0) + 1
    keys = {node: (names[node], directions[node]) for node in chosen}
    for depth in range(deepest, 0, -1):
        if len(set(keys.values())) <= most:
            break
        keys = {node: (scope_of(names[node], depth), directions[node]) for node in chosen}
    return _boxes(graph, chosen, keys)


def scope_of(name: str, depth: int) -> str:
    """The first scopes of a name, without what marks gradients."""
    for prefix in GRADIENTS:
        name = name.removeprefix(prefix)
    parts = name.split("/")
    return "/".join(parts[:-1][:depth]) or parts[0]


def _boxes(graph: Graph, chosen: list[int], keys: dict[int, tuple[str, str]]) -> list[Box]:
    places: dict[tuple[str, str], int] = {}
    found: list[Box] = []
    box_of = {}
    for node in chosen:
        place = places.setdefault(keys[node], len(found))
        if place == len(found):
            found.append(Box(*keys[node]))
        found[place].nodes.append(node)
        box_of[node] = place
    level = _levels(graph, set(chosen))
    for box in found:
        box.level = int(np.median([level[node] for node in box.nodes]))
    rank = {level: row for row, level in enumerate(sorted({box.level for box in found}))}
    for box in found:
        box.level = rank[box.level]
    for node, sources in _needs(graph, box_of):
        found[node].needs |= sources - {node}
    return found


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
    """How many shown nodes the longest chain to a node has before it."""
    level: list[int] = []
    for _node, needs in enumerate(graph.needs):
        before = max((level[each] + (each in chosen) for each in needs.tolist()), default=0)
        level.append(before)
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
