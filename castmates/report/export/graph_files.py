"""Writes a lead's graph as a file: SVG to look at, GraphML and JSON for other programs."""

import json
import math
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.files import replace, replace_text, writing
from castmates.report.export.graph_study import LOSS, TIME, GraphStudy, graph_study
from castmates.report.export.graph_svg import svg
from castmates.report.results import Results
from castmates.results.folder import StudyFolder

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
