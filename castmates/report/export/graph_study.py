"""What an exported graph shows of a study: a lead's nodes and edges, with what they lose beside one mix."""

from dataclasses import dataclass

import pandas as pd

from castmates.analysis.dataflow.effects import STAYS
from castmates.analysis.operations.per_trace import lead_alone
from castmates.errors import CastmatesError
from castmates.report.results import Results
from castmates.report.text.words import number, plain
from castmates.study.spec import UNMANAGED

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
