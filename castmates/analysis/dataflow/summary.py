"""Paths of traces -> rows by scene: what steps consist of along their path, and each operation's part in it.

And the graph of each lead with what its nodes took: a row per node, and per edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.core import launch_means
from castmates.analysis.dataflow.join import ABSENT, FETCH, NODE, Nodes, Steps, joined_steps, nodes_of
from castmates.analysis.dataflow.work import Graph
from castmates.analysis.keys import LAUNCH, LEAD, MIX, SCENE, SCENE_ROUND, TRACE
from castmates.analysis.operations.per_trace import in_every_trace, lead_alone, longest_first
from castmates.study.spec import UNMANAGED

# Calls and a graph -> the paths of each trace's steps, of the schedule and of the graph, and each operation's part.
#
# What a step takes at least by its graph, with the times that its nodes took, is computed and no measurement: with more
# threads, nodes would take other times than they did.
#
# The path of a schedule leads back from a step's last operation, always to what ended last before it could begin. An
# operation begins once two things are over: what it needs, and what its thread ran before. So the walk leads through
# edges of the graph and through the order of calls on threads, and whatever lies on it has bounded this step. What lies
# between the end of one call and the begin of the next is nobody's: the thread worked on no operation. A node that the
# trace has no call of passes on when it was ready, in no time. With what comes before the first call and after the
# last, a step adds up exactly, whatever the clocks do: where a call begins before the end of what it needs, the moments
# that both have are counted once, as the later one's.

Ints = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).min
MS = 1e6  # nanoseconds
ENOUGH = 0.95  # of the operations' time must be of nodes of the graph: below it, the trace shows another graph
PARTS = ("before_ms", "batch_ms", "compute_ms", "other_ms", "idle_ms", "after_ms")  # add up to a step
NUMBERS = ["step_ms", *PARTS, "nodes", "work_ms", "graph_path_ms", "per_thread_ms"]  # of a trace, that are averaged
_POOL = r"/-?\d+$"  # the number that TensorFlow gives each thread of a pool
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Path:
    """One step's path, from its first call to its last; times in whole nanoseconds."""

    nodes: Ints  # -1: no node of the graph
    thread: Ints
    begin: Ints  # of the call's part of the path
    end: Ints
    ready: Ints  # when nothing but the executor was in its way: the end of the call before it on the path
    before: int  # the first call
    after: int  # the last one has ended

    @property
    def time(self) -> Ints:
        """By call."""
        return self.end - self.begin

    @property
    def waiting(self) -> Ints:
        """By call, before it begins."""
        return self.begin - self.ready


def paths(graph: Graph, found: Steps) -> list[Path | None]:
    """A path of each step; None where a step has no call of any node."""
    last = _last_needed(graph, found.begin, found.end)
    return [_walked(found, step, last[step]) for step in range(len(found.step_begin))]


def _last_needed(graph: Graph, begin: Ints, end: Ints) -> Ints:
    """By step and node: of the nodes with a call that it needs, through others without one, that which ended last."""
    steps = len(begin)
    rows = np.arange(steps)
    ended = np.full((steps, graph.count), NEVER)  # of the node, or of what it passes on
    carrier = np.full((steps, graph.count), ABSENT)  # the node with a call whose end that is
    found = np.full((steps, graph.count), ABSENT)
    there = begin >= 0
    for node, needs in enumerate(graph.needs):
        if len(needs):
            latest = ended[:, needs].argmax(axis=1)
            found[:, node] = carrier[:, needs][rows, latest]
            ended[:, node] = ended[:, needs][rows, latest]
            carrier[:, node] = found[:, node]
        ended[:, node] = np.where(there[:, node], end[:, node], ended[:, node])
        carrier[:, node] = np.where(there[:, node], node, carrier[:, node])
    return found


def _walked(found: Steps, step: int, last: Ints) -> Path | None:
    """Walk back from the node that ended last; `until` is the moment to which everything is accounted for."""
    there, calls = found.begin[step] >= 0, found.calls
    if not there.any():
        return None
    step_begin, step_end = int(found.step_begin[step]), int(found.step_end[step])
    ended = calls.of[step, int(np.where(there, found.end[step], NEVER).argmax())]
    call: int | None = max(ended, key=calls.end.__getitem__)
    until = step_end
    places: list[int] = []
    begins: list[int] = []
    ends: list[int] = []
    while call is not None:
        ends.append(max(min(int(calls.end[call]), until), step_begin))
        until = max(min(int(calls.begin[call]), ends[-1]), step_begin)
        places.append(call)
        begins.append(until)
        call = _before(found, step, call, last)
    first = min(max(int(found.begin[step][there].min()), step_begin), until)  # from its first node on, the graph runs
    at, begin, end = (np.array(each[::-1], np.int64) for each in (places, begins, ends))
    ready = np.append(first, end[:-1])
    return Path(calls.node[at], calls.thread[at], begin, end, ready, first - step_begin, step_end - int(end[-1]))


def _before(found: Steps, step: int, call: int, last: Ints) -> int | None:
    """What ended last: the call of what this one needs, or the call before it on its thread, in this step."""
    calls, candidates = found.calls, []
    if call > calls.first[calls.thread[call]] and calls.end[call - 1] > found.step_begin[step]:
        candidates.append(call - 1)
    node = int(calls.node[call])
    if node != ABSENT and last[node] != ABSENT:
        candidates += [place for place in calls.of[step, int(last[node])] if calls.begin[place] < calls.begin[call]]
    return max(candidates, key=calls.end.__getitem__, default=None)


@dataclass(frozen=True)
class Bounds:
    """By step, in the unit of the durations."""

    longest: Ints  # the longest path: no number of threads makes the step shorter
    work: Ints  # all nodes together
    slack: Ints  # by step and node: how much longer it could take before the longest path grows


def bounds(graph: Graph, duration: Ints, work: Ints | None = None) -> Bounds:
    """Earliest and latest ends of all nodes; `duration` by step and node, 0 for what took no time.

    `work` is given where it is more than the duration, because calls of a node overlap.
    """
    steps = len(duration)
    end, tail = np.zeros((2, steps, graph.count), np.int64)
    for node, needs in enumerate(graph.needs):
        ready = end[:, needs].max(axis=1) if len(needs) else 0
        end[:, node] = ready + duration[:, node]
    for node in range(graph.count - 1, -1, -1):
        after = graph.needed_by[node]
        if len(after):
            tail[:, node] = (tail[:, after] + duration[:, after]).max(axis=1)
    longest = end.max(axis=1) if graph.count else np.zeros(steps, np.int64)
    return Bounds(longest, (duration if work is None else work).sum(axis=1), longest[:, None] - end - tail)


@dataclass(frozen=True)
class PathTraces:
    """The traces of a study."""

    traces: pd.DataFrame  # a row per trace
    operations: pd.DataFrame  # a row per trace and operation with a call

    @classmethod
    def together(cls, parts: "Sequence[PathTraces]") -> "PathTraces":
        """Those of several launches together."""
        return cls(
            pd.concat([part.traces for part in parts], ignore_index=True),
            pd.concat([part.operations for part in parts], ignore_index=True),
        )


def path_traces(calls: pd.DataFrame, steps: pd.DataFrame, nodes: pd.DataFrame, edges: pd.DataFrame) -> PathTraces:
    """Reduce the rows of one launch."""
    graph = nodes_of(nodes, edges)
    traced = steps[steps["part"] == "traced"]
    of_trace = dict(list(calls.groupby(TRACE, observed=True)))
    rows, operations = [], []
    for key, own in traced.groupby(TRACE, observed=True):
        row: dict[str, Any] = dict(zip(TRACE, key, strict=True)) | {"threads": int(own["threads_inter"].iloc[0])}
        found = joined_steps(graph, of_trace.get(key, calls.iloc[:0]), own)
        row |= {"steps": len(own), "step_ms": own["duration_ns"].mean() / MS, "joined": found.joined}
        whole, reason = whole_paths(graph, found)
        if reason:
            rows.append(row | {"reason": reason})
            continue
        # The bounds of what computes: the wait for the batch is none of the graph's work.
        waits = (graph.table["type"] == FETCH).to_numpy()
        edge = bounds(graph.graph, *(np.where(waits[None, :], 0, each) for each in (found.duration, found.work)))
        added = _Added(graph, found, whole)
        rows.append(row | {"reason": ""} | added.parts() | _bounds(edge, row["threads"]))
        operations.append(added.operations(edge).assign(**{name: row[name] for name in TRACE}))
    table = pd.concat(operations, ignore_index=True) if operations else pd.DataFrame(columns=[*TRACE, *NODE])
    return PathTraces(pd.DataFrame(rows, columns=None if rows else [*TRACE, "reason"]), table)


def whole_paths(nodes: Nodes, found: Steps) -> tuple[list[Path], str]:
    """The paths of all steps of a trace; else none, and why."""
    if found.joined < ENOUGH:
        share, least = f"{100 * found.joined:.0f} %", f"{100 * ENOUGH:.0f} %"
        return [], f"nodes of the graph account for {share} of the operations' time, less than {least}"
    walked = paths(nodes.graph, found)
    whole = [path for path in walked if path is not None]
    if not whole or len(whole) < len(walked):
        return [], "a step has no call of any node"
    return whole, ""


def _bounds(edge: Bounds, threads: int) -> dict[str, float]:
    work = float(edge.work.mean()) / MS
    return {"work_ms": work, "graph_path_ms": float(edge.longest.mean()) / MS, "per_thread_ms": work / max(threads, 1)}


class _Added:
    """The paths of a trace's steps, added up by node; milliseconds of a step."""

    def __init__(self, nodes: Nodes, found: Steps, walked: Sequence[Path]) -> None:
        self._nodes, self._found, self._paths = nodes, found, walked
        self._batch = (nodes.table["type"] == FETCH).to_numpy()
        self.on, self.time, self.waiting = np.zeros((3, nodes.graph.count + 1))  # the last is no node of the graph
        for path in walked:
            self.on[np.unique(path.nodes)] += 1
            np.add.at(self.time, path.nodes, path.time)
            np.add.at(self.waiting, path.nodes, path.waiting)

    def parts(self) -> dict[str, float]:
        """Of a step: what the path consists of; adds up to it."""
        steps = len(self._paths)
        sums = {
            "before_ms": float(sum(path.before for path in self._paths)),
            "batch_ms": float(self.time[:-1][self._batch].sum()),
            "compute_ms": float(self.time[:-1][~self._batch].sum()),
            "other_ms": float(self.time[-1]),
            "idle_ms": float(self.waiting.sum()),
            "after_ms": float(sum(path.after for path in self._paths)),
            "nodes": MS * float(self.on[:-1].sum()),
        }
        return {name: value / MS / steps for name, value in sums.items()}

    def operations(self, edge: Bounds) -> pd.DataFrame:
        """Of each node that has a call: a row."""
        steps, found = len(self._paths), self._found
        called = found.begin >= 0
        table = self._nodes.table[NODE].astype("str").assign(
            on_schedule_path=self.on[:-1] / steps,
            path_ms=self.time[:-1] / MS / steps,
            ms=found.work.sum(axis=0) / MS / steps,
            waiting_ms=self.waiting[:-1] / MS / steps,
            on_graph_path=((edge.slack == 0) & called & ~self._batch).mean(axis=0),
            graph_slack_ms=edge.slack.mean(axis=0) / MS,
            thread=self._pools(),
        )  # fmt: skip
        return pd.DataFrame(table[called.any(axis=0)])

    def _pools(self) -> list[str]:
        """By node: the pool of threads that it ran on, in the first step that has a call of it."""
        thread = self._found.thread
        first = thread[(thread >= 0).argmax(axis=0), np.arange(thread.shape[1])]
        names = pd.Series(self._found.threads, dtype="str").str.replace(_POOL, "", regex=True).tolist()
        return [names[place] if place >= 0 else "" for place in first.tolist()]


COMPUTED = "computed"  # what bounds are
OF_NODES = ["on_schedule_path", "path_ms", "ms", "waiting_ms", "on_graph_path"]  # 0 in a trace without the operation
KEY = [*LEAD, "operation", "type"]
# Of a node without a call.
UNTRACED = {"ms": 0.0, "on_schedule_path": 0.0, "graph_slack_ms": np.nan, "lost_ms": np.nan, "on_graph_path": 0.0}


def critical_path(paths: PathTraces) -> pd.DataFrame:
    """A row per scene, also where there is no path; traces are averaged over a launch, and launches over the scene."""
    table = paths.traces
    if table.empty:
        return pd.DataFrame()
    whole = table[table["reason"] == ""]
    whole = whole.reindex(columns=[*table.columns, *(name for name in NUMBERS if name not in table)])  # no path at all
    every = table.groupby(SCENE).agg(joined=("joined", "min"), threads=("threads", "max"))
    steps = whole.groupby(SCENE)["steps"].sum()
    reasons = table[table["reason"] != ""].groupby(SCENE)["reason"].first()
    found = every.join(steps).join(launch_means(whole, SCENE, NUMBERS)).join(reasons).reset_index()
    found[["steps", "launches"]] = found[["steps", "launches"]].fillna(0).astype("int64")
    found["reason"] = found["reason"].fillna("").where(found["launches"] == 0, "")
    return found.assign(bounds=COMPUTED)


def path_operations(paths: PathTraces) -> pd.DataFrame:
    """A row per scene and operation of the graph that has a call."""
    operations, traces = paths.operations, paths.traces
    if operations.empty:
        return pd.DataFrame()
    every = in_every_trace(operations, traces.loc[traces["reason"] == "", SCENE_ROUND], NODE, OF_NODES)
    found = launch_means(every, [*SCENE, *NODE], [*OF_NODES, "graph_slack_ms"])
    found = found.join(every.groupby([*SCENE, *NODE])["thread"].first())
    return longest_first(found.reset_index(), "path_ms")


def study_nodes(nodes: pd.DataFrame, paths: PathTraces) -> pd.DataFrame:
    """Nodes with their times alone, and what they lose beside the mix in which the step is longest."""
    table = nodes.drop(columns=LAUNCH).astype(dict.fromkeys(KEY, "str"))
    called = ~table.duplicated(KEY)  # of several nodes with one name and type, calls are the first one's
    operations = path_operations(paths)
    if operations.empty:
        return table.assign(**UNTRACED, beside="")
    alone = operations[lead_alone(operations)].set_index(KEY)[
        ["ms", "on_schedule_path", "graph_slack_ms", "on_graph_path"]
    ]
    # By lead: the mix, without a partition, beside which its traced steps are longest.
    traces = paths.traces[(paths.traces["reason"] == "") & (paths.traces["kind"] == "corun")]
    traces = traces[traces["partition"] == UNMANAGED]
    means = traces.groupby([*LEAD, *MIX])["step_ms"].mean().reset_index()
    worst = means.sort_values("step_ms").drop_duplicates(LEAD, keep="last")[[*LEAD, *MIX]]

    beside = operations.merge(worst, on=[*LEAD, *MIX]).set_index(KEY)["ms"]
    table = table.join(alone, on=KEY).join(beside.sub(alone["ms"], fill_value=0.0).rename("lost_ms"), on=KEY)
    table = table.join(worst.set_index(LEAD)["mix"].rename("beside"), on=LEAD).fillna(
        {"beside": "", "ms": 0.0, "on_schedule_path": 0.0, "on_graph_path": 0.0}
    )
    for name, nothing in UNTRACED.items():
        table.loc[~called, name] = nothing
    return table


def study_edges(edges: pd.DataFrame) -> pd.DataFrame:
    """Edges of each lead's graph."""
    return edges.drop(columns=LAUNCH)
