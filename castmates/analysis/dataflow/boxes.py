"""A graph as boxes that fit on a picture: nodes without a call are passed through, and scopes put together; pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from castmates.analysis.dataflow.graph import Graph

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
