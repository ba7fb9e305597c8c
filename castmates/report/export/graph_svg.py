"""A lead's graph as one SVG: searchable, boxes coloured by time, loss or slack, thick edges on its path."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pandas as pd

from castmates.analysis.dataflow.effects import ENTERS, LEAVES, STAYS, Box, boxes, columns
from castmates.analysis.dataflow.work import Graph
from castmates.analysis.operations.per_trace import lead_alone
from castmates.errors import CastmatesError
from castmates.files import replace, replace_text, writing
from castmates.report.results import Results
from castmates.report.text.words import counted, number, plain
from castmates.results.folder import StudyFolder
from castmates.study.spec import UNMANAGED

# What an exported graph shows of a study: a lead's nodes and edges, with what they lose beside one mix.

TIME, LOSS, SLACK = "time", "loss", "slack"
COLOURS = (TIME, LOSS, SLACK)
KEY = ["operation", "type"]


@dataclass(frozen=True)
class GraphStudy:
    """A lead's graph."""

    study: str
    member: str
    beside: str  # the antagonists whose losses it shows; "" for none
    platform: str
    nodes: pd.DataFrame  # by node; of the table dataflow_nodes
    edges: pd.DataFrame
    path: dict[str, float]  # of the table critical_path, of the lead alone or in `mix`; empty where there is no path
    mix: str = ""  # the mix whose path is shown; "" for the path alone

    @property
    def title(self) -> str:
        """What it is a graph of."""
        beside = f" beside {self.beside}" if self.beside else ""
        return f"{plain(self.member)}{beside}: the graph of a step, study {self.study}"

    @property
    def path_words(self) -> str:
        """What the path of a step consists of, in a sentence."""
        where = f"beside {self.beside}" if self.mix else "alone"
        if not self.path:
            return f"No path: no step of the lead {where} fits the graph."
        parts = {
            "before it": "before_ms",
            "batch": "batch_ms",
            "operations": "compute_ms",
            "operations outside the graph": "other_ms",
            "between operations": "idle_ms",
            "after it": "after_ms",
        }
        words = ", ".join(f"{name} {number(self.path[column], 2)}" for name, column in parts.items())
        return (
            f"Path of the schedule of a step {where}, {number(self.path['step_ms'], 2)} ms: {words}. Computed bounds: "
            f"path of the graph {number(self.path['graph_path_ms'], 2)} ms, all operations on the threads "
            f"{number(self.path['per_thread_ms'], 2)} ms."
        )


def graph_study(results: Results, what: str) -> GraphStudy:
    """The graph of a lead, or of the lead of a mix with what it loses there."""
    table = results.dataflow_nodes
    if table.empty:
        raise CastmatesError(
            f"the study {results.name} has no graph: give it 'profile: {{}}' and a lead that runs TensorFlow, and "
            "sweep again (castmates help tracing-graph)."
        )
    member, asked = _chosen(results, what)
    nodes = table[table["member"] == member].sort_values("node").reset_index(drop=True)
    edges = results.dataflow_edges
    edges = edges[edges["member"] == member].reset_index(drop=True)
    mix = asked or str(nodes["beside"].iloc[0])
    scenes = results.critical_path
    here = in_mix(scenes, asked) if asked else lead_alone(scenes)
    own = scenes[(scenes["member"] == member) & here & (scenes["reason"] == "")].to_dict("records")
    return GraphStudy(
        study=results.name,
        member=member,
        beside=plain(mix.partition("+")[2]) if mix else "",
        platform=", ".join(sorted(set(nodes["platform"].astype(str)))),
        nodes=_on_path(results, nodes, member, asked).assign(lost_ms=_lost(results, nodes, member, mix)),
        edges=edges,
        path={str(name): value for name, value in own[0].items()} if own else {},
        mix=asked,
    )


def _chosen(results: Results, what: str) -> tuple[str, str]:
    """The lead and the mix that a word names; "" for no mix."""
    members = sorted(set(results.dataflow_nodes["member"].astype(str)))
    effects = results.path_effects
    mixes = dict(zip(effects["mix"].astype(str), effects["member"].astype(str), strict=True))
    if what in mixes:
        return mixes[what], what
    named = [member for member in members if what in (member, member.partition("@")[0])]
    if named or (not what and len(members) == 1):
        return (named or members)[0], ""
    there = ", ".join([*members, *sorted(mixes)])
    if not what:
        raise CastmatesError(f"the study {results.name} has graphs of {len(members)} leads; name one of: {there}.")
    raise CastmatesError(f"'{what}' is no lead or mix with a graph in the study {results.name}; there are: {there}.")


def in_mix(table: pd.DataFrame, mix: str) -> "pd.Series[bool]":
    """The rows of a mix, unmanaged."""
    return (table["mix"] == mix) & (table["partition"] == UNMANAGED) & (table["kind"] == "corun")


def _on_path(results: Results, nodes: pd.DataFrame, member: str, mix: str) -> pd.DataFrame:
    """Nodes with their share of steps on the paths in a mix, and whether they enter or leave that of the schedule."""
    if not mix:
        return nodes
    operations, changes = results.path_operations, results.path_changes
    operations = operations[(operations["member"] == member) & in_mix(operations, mix)]
    changes = changes[(changes["member"] == member) & (changes["mix"] == mix) & (changes["partition"] == UNMANAGED)]
    keys, first = nodes[KEY].astype("str"), ~nodes.duplicated(KEY)
    schedule, graph, change = (
        keys.join(table.astype(dict.fromkeys(KEY, "str")).set_index(KEY)[name], on=KEY)[name].where(first)
        for table, name in ((operations, "on_schedule_path"), (operations, "on_graph_path"), (changes, "change"))
    )
    return nodes.assign(
        on_schedule_path=schedule.fillna(0.0),
        alone_on_schedule_path=nodes["on_schedule_path"],
        on_graph_path=graph.fillna(0.0),
        change=change.astype("object").fillna(STAYS),
    )


def _lost(results: Results, nodes: pd.DataFrame, member: str, mix: str) -> "pd.Series[float]":
    """By node: how much longer it takes of a step beside the mix than alone; NaN where that was not traced."""
    operations = results.path_operations
    operations = operations[(operations["member"] == member) & (operations["partition"] == UNMANAGED)]
    beside = operations[operations["mix"] == mix].set_index(KEY)["ms"]
    lost = beside.sub(operations[operations["kind"] == "alone"].set_index(KEY)["ms"], fill_value=0.0)
    found = nodes[KEY].astype("str").join(lost.rename("lost"), on=KEY)["lost"]
    return found.where(~nodes.duplicated(KEY)) if mix else found * float("nan")


MOST = 200  # boxes
WIDTH, HEIGHT, ACROSS, DOWN = 196, 34, 14, 34  # of a box, and between boxes
TOP, SIDE = 150, 24
LETTERS = 27
ON_PATH = 0.5  # of steps, from which on a box is drawn as part of the path of the graph
SCRIPT = files("castmates.report.export") / "graph_svg.js"
_SVG_COLOURS = {
    TIME: "time of a step alone",
    LOSS: "longer beside others (red), shorter (blue)",
    SLACK: "slack, none is dark",
}


def svg(study: GraphStudy, colour: str, *, every: bool = False) -> str:
    """The picture; `every` node in a box of its own, with those that traces have no call of."""
    graph = Graph(len(study.nodes), *(study.edges[name].to_numpy("int64") for name in ("from", "to")))
    called = (study.nodes["ms"] > 0).to_numpy() | every
    found = boxes(study.nodes, graph, called, len(study.nodes) if every else MOST)
    at = columns(found)
    left = min(at, default=0.0)
    places = [
        (SIDE + (x - left) * (WIDTH + ACROSS), TOP + box.level * (HEIGHT + DOWN))
        for x, box in zip(at, found, strict=True)
    ]
    values = [_value(study.nodes.iloc[box.nodes], colour) for box in found]
    largest = max((abs(value) for value in values if not math.isnan(value)), default=0.0) or 1.0
    width = max((x for x, _ in places), default=0) + WIDTH + SIDE
    height = max((y for _, y in places), default=TOP) + HEIGHT + SIDE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, 900):.0f}" height="{height:.0f}" '
        'font-family="sans-serif" font-size="11">',
        f"<title>{escape(study.title)}</title>",
        STYLE,
        '<rect width="100%" height="100%" fill="white"/>',
        *_head(study, found, colour, largest),
        *_edges(found, places),
        *(_box(study, box, place, value / largest, number_, colour)
          for number_, (box, place, value) in enumerate(zip(found, places, values, strict=True))),
        f"<script>//<![CDATA[\n{SCRIPT.read_text(encoding='utf-8')}//]]></script>",
        "</svg>\n",
    ]  # fmt: skip
    return "\n".join(parts)


STYLE = (
    "<style>.box rect{stroke:#777;stroke-width:.7}.path rect{stroke:#1a1a1a;stroke-width:2.4}"
    ".edge{fill:none;stroke:#b5b5b5;stroke-width:.8}.edge.path{stroke:#1a1a1a;stroke-width:1.8}"
    ".enters rect{stroke:#b2182b;stroke-width:2.4}.leaves rect{stroke:#2166ac;stroke-width:2.4;stroke-dasharray:6 3}"
    ".found rect{stroke:#d55e00;stroke-width:4}"
    ".near rect{stroke:#0072b2;stroke-width:3}.small{font-size:9.5px;fill:#333}</style>"
)


def _head(study: GraphStudy, found: Sequence[Box], colour: str, largest: float) -> list[str]:
    lines = [
        study.title,
        f"{counted(len(study.nodes), 'node')}, {counted(len(study.edges), 'edge')}; {counted(len(found), 'box')}; "
        f"colour: {_SVG_COLOURS[colour]}, at most {number(largest, 3)} ms; thick: on the path of the graph in half of the "  # noqa: E501
        f"steps{f' beside {study.beside}; red: enters the path of the schedule; blue: leaves it' if study.mix else ''}",
        study.path_words,
        f"Times: {study.platform}, traced steps; slack and bounds are computed, operations and bytes estimated "
        "(castmates help tracing-graph).",
    ]
    texts = [
        f'<text x="{SIDE}" y="{26 + 18 * place}" font-size="{15 if place == 0 else 11}">{escape(line)}</text>'
        for place, line in enumerate(lines)
    ]
    search = (
        f'<foreignObject x="{SIDE}" y="{100}" width="600" height="32"><div xmlns="http://www.w3.org/1999/xhtml">'
        '<input id="search" type="search" placeholder="search a name or type; Enter goes on" size="40"/> '
        '<span id="hits" style="font:11px sans-serif"></span></div></foreignObject>'
    )
    return [*texts, search]


def _edges(found: Sequence[Box], places: Sequence[tuple[float, float]]) -> list[str]:
    lines = []
    for target, box in enumerate(found):
        for source in sorted(box.needs):
            (x0, y0), (x1, y1) = places[source], places[target]
            x0, x1, y0 = x0 + WIDTH / 2, x1 + WIDTH / 2, y0 + HEIGHT
            bend = max(16.0, (y1 - y0) / 2)
            lines.append(
                f'<path class="edge" data-from="{source}" data-to="{target}" '
                f'd="M{x0:.0f} {y0:.0f}C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}"/>'
            )
    return lines


def _box(study: GraphStudy, box: Box, place: tuple[float, float], value: float, number_: int, colour: str) -> str:
    rows = study.nodes.iloc[box.nodes]
    on_path = bool((rows["on_graph_path"] >= ON_PATH).any())
    x, y = place
    one = len(rows) == 1
    second = str(rows["type"].iloc[0]) if one else counted(len(rows), "node")
    words = f"{second} · {number(float(rows['ms'].sum()), 3)} ms"
    details = "\n".join(_details(study, box, rows))
    return (
        f'<g class="box{" path" if on_path else ""}{_change(rows)}" id="box-{number_}" data-search='
        f"{quoteattr(' '.join([box.name, *rows['name'].astype(str), *rows['type'].astype(str)]).lower())}>"
        f"<title>{escape(details)}</title>"
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{_fill(value, colour)}"/>'
        f'<text x="{x + 6:.0f}" y="{y + 14:.0f}">{escape(_short(box.name))}</text>'
        f'<text class="small" x="{x + 6:.0f}" y="{y + 27:.0f}">{escape(words)}</text></g>'
    )


def _change(rows: pd.DataFrame) -> str:
    """The class of what enters or leaves the path of the schedule beside others."""
    changes = set(rows["change"]) if "change" in rows else set()
    return next((f" {each}" for each in (ENTERS, LEAVES) if each in changes), "")


def _details(study: GraphStudy, box: Box, rows: pd.DataFrame) -> list[str]:
    lines = [box.name, f"{box.direction or 'no direction'}, {number(float(rows['ms'].sum()), 3)} ms of a step alone"]
    lost = float(rows["lost_ms"].sum(min_count=1))
    if not math.isnan(lost):
        lines.append(f"{number(lost, 3)} ms longer beside {study.beside}")
    if len(rows) > 1:
        return [*lines, f"{counted(len(rows), 'node')}: {', '.join(sorted(set(rows['type'].astype(str))))}"]
    (row,) = rows.to_dict("records")
    work = f"{_large(row['flops'])} operations, {_large(row['bytes'])} bytes (estimated)"
    return [
        *lines,
        f"{row['type']} on {row['device']}",
        f"on the path of the schedule in {number(100 * row['on_schedule_path'], 0)} % of steps"
        + (f" beside {study.beside}, {number(100 * row['alone_on_schedule_path'], 0)} % alone" if study.mix else ""),
        f"on the path of the graph in {number(100 * row['on_graph_path'], 0)} % of steps, "
        f"slack {number(row['graph_slack_ms'], 3)} ms (computed)",
        f"takes {row['inputs'] or 'nothing'}",
        f"gives {row['outputs'] or 'nothing'}",
        work,
    ]


def _large(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:,.0f}".replace(",", "\N{THIN SPACE}")


def _short(name: str) -> str:
    return name if len(name) <= LETTERS else f"…{name[1 - LETTERS :]}"


def _value(rows: pd.DataFrame, colour: str) -> float:
    """What a box is coloured by; the least slack of its nodes."""
    column = {TIME: "ms", LOSS: "lost_ms", SLACK: "graph_slack_ms"}[colour]
    return float(rows[column].min()) if colour == SLACK else float(rows[column].sum(min_count=1))


# From nothing to much: of one side, and of two.
_RAMPS = {"up": ("#ffffff", "#fddbc7", "#ef8a62", "#e06b52"), "down": ("#ffffff", "#d1e5f0", "#67a9cf", "#5b9bd0")}


def _fill(value: float, colour: str) -> str:
    if math.isnan(value):
        return "#f2f2f2"
    if colour == SLACK:
        return _between(_RAMPS["up"], 1 - value)
    return _between(_RAMPS["up" if value >= 0 else "down"], math.sqrt(abs(value)))


def _between(ramp: Sequence[str], share: float) -> str:
    at = min(max(share, 0.0), 1.0) * (len(ramp) - 1)
    low, high = list(pairwise(ramp))[min(int(at), len(ramp) - 2)]
    rest = at - min(int(at), len(ramp) - 2)
    mixed = (round(int(low[i : i + 2], 16) * (1 - rest) + int(high[i : i + 2], 16) * rest) for i in (1, 3, 5))
    return "#" + "".join(f"{part:02x}" for part in mixed)


# The files of a lead's graph: SVG to look at, GraphML and JSON for other programs.

SVG, GRAPHML, JSON = "svg", "graphml", "json"
FORMATS = (SVG, GRAPHML, JSON)
ABOUT = {
    "times": "milliseconds of traced steps, means over launches",
    "flops": "estimated",
    "bytes": "estimated",
    "graph_slack_ms": "computed",
}
REPEATED = ("study", "member", "platform")  # of all nodes and edges


def write_graph(study: GraphStudy, format_: str, colour: str, output: Path, *, every: bool = False) -> None:
    """Write the graph; all nodes and edges in GraphML and JSON, in a picture those that traces have a call of."""
    if format_ == SVG and colour == LOSS and study.nodes["lost_ms"].isna().all():
        raise CastmatesError(
            f"--colour loss: {study.member} was not traced beside others in the study {study.study}, so no loss of its "
            "operations is known; colour by time or slack."
        )
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        if format_ == GRAPHML:
            replace(output, lambda path: _graphml(study, path))
        else:
            text = svg(study, colour, every=every) if format_ == SVG else json.dumps(as_json(study), indent=1) + "\n"
            replace_text(output, text)


def write_graphs(results: Results, folder: StudyFolder) -> None:
    """A picture of each lead's graph, coloured by time, to which the page leads."""
    for member in sorted(set(results.dataflow_nodes["member"].astype(str))):
        write_graph(graph_study(results, member), SVG, TIME, folder.graph_file(member, SVG))


def as_json(study: GraphStudy) -> dict[str, Any]:
    """Nodes and edges as plain values; what is not known is null."""
    return {
        "study": study.study,
        "member": study.member,
        "beside": study.beside,
        "platform": study.platform,
        "about": ABOUT,
        "critical_path": {name: _plain(value) for name, value in study.path.items()},
        "nodes": _rows(study.nodes),
        "edges": _rows(study.edges),
    }


def _graphml(study: GraphStudy, path: Path) -> None:
    import networkx as nx

    graph = nx.MultiDiGraph(study=study.study, member=study.member, beside=study.beside, platform=study.platform)
    graph.graph |= {f"about_{name}": words for name, words in ABOUT.items()}
    for row in _rows(study.nodes):
        graph.add_node(
            row["node"], **{name: value for name, value in row.items() if name != "node" and value is not None}
        )
    for row in _rows(study.edges):
        graph.add_edge(row["from"], row["to"], kind=row["kind"], output=row["output"])
    nx.write_graphml(graph, path)


def _rows(table: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [
        {name: _plain(value) for name, value in row.items() if name not in REPEATED}
        for row in table.drop(columns="beside", errors="ignore").to_dict("records")
    ]


def _plain(value: Any) -> Any:  # noqa: ANN401
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and math.isnan(value) else value
