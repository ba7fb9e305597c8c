"""Critical paths, slack and bounds of generated graphs, against an executor that knows them and against networkx."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from castmates.analysis.dataflow.effects import path_changes, path_effects
from castmates.analysis.dataflow.join import joined_steps, nodes_of
from castmates.analysis.dataflow.summary import (
    PARTS,
    PathTraces,
    bounds,
    critical_path,
    path_operations,
    path_traces,
    paths,
)
from castmates.analysis.dataflow.work import Graph, in_order
from castmates.analysis.tables.thread_bounds import between, thread_bounds
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.report.export.graph_svg import FORMATS, LOSS, graph_study, write_graph
from castmates.report.results import Results, read_results
from castmates.report.text.paths import context
from tests.unit.dataflow_maker import Ran, called, executed, graph_tables, random_graph, results, study, tables
from tests.unit.printed_intervals import assert_told
from tests.unit.results_maker import make

NOTHING = np.empty(0, np.int64)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A study with a graph, which tests do not change."""
    return results(tmp_path_factory.mktemp("made") / "study")


def _path_of(graph: Graph, run: Ran):
    calls, steps = tables(graph, [run])
    (found,) = paths(graph, joined_steps(nodes_of(*graph_tables(graph)), calls, steps))
    assert found is not None
    assert found.time.sum() + found.waiting.sum() + found.before + found.after == run.step_end - run.step_begin
    return found


def _drawn_run(seed: int) -> tuple[Graph, Ran]:
    dice = np.random.default_rng(seed)
    count = int(dice.integers(1, 60))
    graph = random_graph(dice, count, int(dice.integers(0, 150)))
    return graph, executed(graph, dice.integers(100, 10_000, count), int(dice.integers(1, 5)), dice)


@pytest.mark.parametrize("seed", range(25))
def test_the_path_of_the_schedule_is_what_the_executor_waited_for(seed: int) -> None:
    graph, run = _drawn_run(seed)
    expected = [int(run.end.argmax())]
    while run.bounded_by[expected[0]] >= 0:
        expected.insert(0, run.bounded_by[expected[0]])
    found = _path_of(graph, run)
    assert found.nodes.tolist() == expected
    assert found.time.tolist() == (run.end - run.begin)[expected].tolist()
    waits = [run.begin[after] - run.end[before] for before, after in itertools.pairwise(expected)]
    assert found.waiting.tolist() == [run.begin[expected[0]] - run.begin.min(), *waits]


@pytest.mark.parametrize("seed", range(8))
def test_a_step_grows_with_what_is_on_the_path_of_its_schedule_and_with_nothing_else(seed: int) -> None:
    """The same operations on the same threads in the same order, each in turn longer."""
    graph, run = _drawn_run(seed)
    on = set(_path_of(graph, run).nodes.tolist())
    order = np.argsort(run.begin, kind="stable").tolist()
    for longer in range(graph.count):
        end: dict[int, int] = {}
        free: dict[int, tuple[int, int]] = {}  # by thread: when its last operation ended, and when it does now
        for node in order:
            waits = [(int(run.end[each]), end[each]) for each in graph.needs[node].tolist()]
            waits += [free[run.thread[node]]] if run.thread[node] in free else []
            before, now = (max((wait[place] for wait in waits), default=0) for place in (0, 1))
            end[node] = now + int(run.end[node]) - before + (node == longer)
            free[run.thread[node]] = int(run.end[node]), end[node]
        assert max(end.values()) - run.end.max() == (longer in on)


# Four products one after the other, a product and a tanh, a convolution, and their sum, with a variable that is read
# for the last product. Microseconds.
CHAIN = {"read": 7, "A0": 5000, "A1": 4600, "A2": 3800, "A3": 2900, "B0": 5200, "B1": 1100, "C": 3100, "sum": 380}
NEEDS = {"A1": "A0", "A2": "A1", "A3": "A2 read", "B1": "B0", "sum": "A3 B1 C"}
LONGEST = ["A0", "A1", "A2", "A3", "sum"]
SCHEDULES = {  # what threads run -> the path of the schedule
    "A0 B0 A1 C A2 B1 read A3 sum": "A0 B0 A1 C A2 B1 read A3 sum",
    "A0 A1 A2 A3 sum | read B0 B1 C": "A0 A1 A2 A3 sum",
    "B0 A0 A1 A2 A3 sum | read C B1": "B0 A0 A1 A2 A3 sum",  # what stands in the way has slack, and bounds the step
    "A0 A1 A2 A3 sum | B0 B1 | C | read": "A0 A1 A2 A3 sum",
}


@pytest.mark.parametrize("threads", SCHEDULES)
def test_known_answers_for_one_two_and_four_threads(threads: str) -> None:
    names = ["batch", *CHAIN]
    edges = [(names.index(need), names.index(node)) for node, needs in NEEDS.items() for need in needs.split()]
    graph = Graph(len(names), *np.array(edges).T)
    begin, end, thread = np.full((3, len(names)), -1)
    lanes = [lane.split() for lane in threads.split("|")]
    ended = {"": 1000}
    while len(ended) <= len(CHAIN):
        for number, lane in enumerate(lanes):
            for before, node in itertools.pairwise(["", *lane]):
                needs = [before, *NEEDS.get(node, "").split()]
                if node not in ended and ended.keys() >= set(needs):
                    at = names.index(node)
                    begin[at], thread[at] = max(ended[each] for each in needs), number
                    end[at] = ended[node] = begin[at] + 1000 * CHAIN[node]
    run = Ran(begin, end, thread, [], 1000, int(end.max()))
    assert [names[node] for node in _path_of(graph, run).nodes] == SCHEDULES[threads].split()
    found = path_traces(*tables(graph, [run], threads=len(lanes)), *graph_tables(graph))
    rows = path_operations(found).set_index("operation")
    (scene,) = critical_path(found).to_dict("records")
    of_graph = {f"layer/op_{names.index(node)}" for node in LONGEST}
    assert set(rows.index[rows["on_graph_path"] == 1]) == of_graph == set(rows.index[rows["graph_slack_ms"] == 0])
    assert scene["graph_path_ms"] == pytest.approx(16.68)
    assert scene["compute_ms"] == pytest.approx(sum(CHAIN[node] for node in SCHEDULES[threads].split()) / 1000)
    assert scene["idle_ms"] == 0
    assert rows["path_ms"].sum() == pytest.approx(scene["step_ms"])


@pytest.mark.parametrize("seed", range(12))
def test_what_a_trace_left_out_passes_on_in_no_time(seed: int) -> None:
    """Short nodes have no call; the path leads through them, and still adds up."""
    dice = np.random.default_rng(seed)
    graph = random_graph(dice, 40, 90)
    run = executed(graph, dice.integers(100, 10_000, 40), 2, dice)
    run.begin[dice.random(40) < 0.4] = -1
    found = _path_of(graph, run)
    assert (run.begin[found.nodes] >= 0).all()
    assert min(found.waiting.min(), found.time.min(), found.before, found.after) >= 0
    reach = nx.DiGraph(list(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
    for before, after in itertools.pairwise(found.nodes.tolist()):
        assert run.thread[before] == run.thread[after] or nx.has_path(reach, before, after)


def test_clocks_that_disagree_are_counted_once() -> None:
    graph = Graph(2, np.array([0]), np.array([1]))
    run = Ran(np.array([10, 30]), np.array([40, 60]), np.array([0, 1]), [-1, 0], 0, 70)
    found = _path_of(graph, run)
    assert (found.time.tolist(), found.waiting.tolist(), found.before, found.after) == ([20, 30], [0, 0], 10, 10)


def test_calls_of_no_node_and_calls_inside_of_others() -> None:
    """On one thread: a call of another graph, and one around two nodes of this one, which counts as nothing itself."""
    graph = Graph(3, np.array([1]), np.array([2]))
    run = Ran(np.array([-1, 50, 80]), np.array([-1, 70, 95]), np.zeros(3, np.int64), [], 0, 100)
    calls, steps = tables(graph, [run])
    others = [{"operation": "else", "begin_ns": 10, "duration_ns": 30}, {"begin_ns": 45, "duration_ns": 55}]
    calls = pd.concat([calls, *(calls.iloc[:1].assign(**({"operation": "around"} | other)) for other in others)])
    (found,) = paths(graph, joined_steps(nodes_of(*graph_tables(graph)), calls, steps))
    assert found is not None
    assert (found.nodes.tolist(), found.time.tolist()) == ([-1, 1, 2], [30, 20, 15])
    assert (found.waiting.tolist(), found.before, found.after) == ([0, 10, 10], 10, 5)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_and_slack_are_those_of_networkx(seed: int) -> None:
    dice = np.random.default_rng(seed)
    count = int(dice.integers(1, 50))
    graph = random_graph(dice, count, 120)
    duration = dice.integers(0, 1000, (3, count))
    found = bounds(graph, duration)
    for step in range(3):
        weighted = nx.DiGraph()
        weighted.add_nodes_from(range(count))
        weighted.add_node("end")
        for source, target in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
            weighted.add_edge(source, target, weight=int(duration[step, source]))
        weighted.add_weighted_edges_from((node, "end", int(duration[step, node])) for node in range(count))
        assert found.longest[step] == nx.dag_longest_path_length(weighted)
        for node in range(0, count, 7):  # its slack: what it can take longer, and the longest path not grow
            longer = duration[step].copy()
            longer[node] += found.slack[step, node]
            assert bounds(graph, longer[None]).longest[0] == found.longest[step]
            longer[node] += 1
            assert bounds(graph, longer[None]).longest[0] == found.longest[step] + 1


@pytest.mark.parametrize("seed", range(20))
def test_a_step_with_other_threads_is_within_its_bounds(seed: int) -> None:
    """Whatever the order in which an executor takes ready nodes, from a trace with any number of threads."""
    dice = np.random.default_rng(seed)
    count, threads = int(dice.integers(2, 60)), int(dice.integers(1, 5))
    graph, took = random_graph(dice, count, int(dice.integers(0, 150))), dice.integers(100, 10_000, count)
    took[0] = 1  # the batch
    slack = count * 7 + 200  # nanoseconds of its executor, and before and after its steps
    run = executed(graph, took, threads, dice)
    found = thread_bounds(path_traces(*tables(graph, [run], threads=threads), *graph_tables(graph)))
    assert len(found) == 3 if threads > 1 else 2
    for row in found.to_dict("records"):
        for _ in range(10):
            other = executed(graph, took, row["threads"], dice)
            length = other.step_end - other.step_begin
            assert 1e6 * row["at_least_ms"] - slack <= length <= 1e6 * row["at_most_ms"] + slack
    told = thread_bounds(path_traces(*tables(graph, [executed(graph, took, 4, dice)], threads=1), *graph_tables(graph)))
    outside = told["step_ms"] < 0.99 * told["at_least_ms"]  # more ran side by side than it says
    assert list(told["change"]) == (["as now"] if outside.any() else ["as now", "twice"])
    assert [between(4.0, 1.0, n) for n in (1, 2, 4)] == [(4.0, 4.0), (2.0, 2.5), (1.0, 1.75)]  # four equal chains


def test_calls_of_a_loop_count_once_and_not_what_lies_between() -> None:
    """Of a step of 60 µs: a b a b a b, each 10 µs, on one thread; node 0 would be the batch."""
    graph = Graph(3, np.array([1]), np.array([2]))
    nobody = np.full(3, -1)

    def ran(node: int, begin: int) -> Ran:
        here = np.arange(3) == node
        begins, ends = np.where(here, begin, -1), np.where(here, begin + 10_000, -1)
        return Ran(begins, ends, np.zeros(3, np.int64), nobody.tolist(), 0, 60_000)

    turns = [tables(graph, [ran(1 + turn % 2, 10_000 * turn)]) for turn in range(6)]
    found = path_traces(pd.concat(calls for calls, _ in turns), turns[0][1], *graph_tables(graph))
    scene = critical_path(found).iloc[0]
    bounds_ms = scene[["step_ms", "work_ms", "graph_path_ms", "per_thread_ms"]].tolist()
    assert bounds_ms == pytest.approx([0.06] * 4)
    assert path_operations(found)["ms"].tolist() == pytest.approx([0.03, 0.03])
    assert sum(scene[name] for name in PARTS) == pytest.approx(0.06)


def test_odd_graphs() -> None:
    assert bounds(Graph(1, NOTHING, NOTHING), np.array([[5]])).longest.tolist() == [5]
    assert bounds(Graph(0, NOTHING, NOTHING), np.empty((2, 0), np.int64)).longest.tolist() == [0, 0]
    apart = bounds(Graph(2, NOTHING, NOTHING), np.array([[5, 3]]))  # two nodes that nothing connects
    assert (apart.longest.tolist(), apart.work.tolist(), apart.slack.tolist()) == ([5], [8], [[0, 2]])
    one = Graph(1, NOTHING, NOTHING)
    calls, steps = tables(one, [Ran(np.array([5]), np.array([7]), np.array([0]), [], 0, 9)])
    assert paths(one, joined_steps(nodes_of(*graph_tables(one)), calls.iloc[:0], steps)) == [None]
    assert in_order(["a", "b", "c"], [(2, 0), (0, 1)]) == [2, 0, 1]
    with pytest.raises(CastmatesError, match=r"circle.*'b'"):
        in_order(["a", "b", "c"], [(0, 1), (1, 2), (2, 1)])
    with pytest.raises(CastmatesError, match="edge to node 7"):
        Graph(2, np.array([0]), np.array([7]))


def test_a_study_adds_up_in_every_table() -> None:
    paths_, _, _ = study(1.5)
    scenes = critical_path(paths_)
    assert scenes[list(PARTS)].sum(axis=1).to_numpy() == pytest.approx(scenes["step_ms"].to_numpy(), abs=1e-9)
    assert set(scenes["reason"]) == {""}
    assert set(scenes["launches"]) == {3}
    assert set(scenes["steps"]) == {24}
    assert (scenes["graph_path_ms"] <= scenes["work_ms"]).all()
    assert (scenes["work_ms"] <= scenes["step_ms"]).all()
    of_nodes = path_operations(paths_)
    computing = of_nodes[of_nodes["type"] == "MatMul"].groupby("scene")["path_ms"].sum()
    assert computing.to_numpy() == pytest.approx(
        scenes.set_index("scene")["compute_ms"].loc[computing.index].to_numpy()
    )
    effects = path_effects(paths_).set_index("part")["difference_ms"]
    assert effects.drop("step").sum() == pytest.approx(effects["step"], abs=1e-9)
    assert effects["step"] == pytest.approx(scenes["step_ms"].iloc[1] - scenes["step_ms"].iloc[0], abs=1e-9)
    changes = path_changes(paths_)
    for part in ("slower", "path"):
        assert changes[f"{part}_ms"].sum() == pytest.approx(effects[part], abs=1e-9)


def test_with_one_thread_all_time_is_work_or_dispatch() -> None:
    """The path leads through all that the thread ran: the work is the step, but for the latencies of the executor."""
    (alone,) = critical_path(study(1.0)[0])[lambda rows: rows["kind"] == "alone"].to_dict("records")
    assert alone["compute_ms"] == pytest.approx(alone["work_ms"])
    assert alone["compute_ms"] + alone["batch_ms"] == pytest.approx(alone["step_ms"], rel=0.01)
    assert alone["idle_ms"] < 0.01 * alone["step_ms"]


def test_a_path_that_changes_is_no_slower_node() -> None:
    """Two branches: alone the left one decides, beside others the right one, which then takes longer."""
    graph = Graph(4, np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]))
    parts = []
    for launch in (1, 2, 3):
        rows = []
        for scene, right in (("alone", 40_000), ("corun:lead+stream", 90_000)):
            begin = np.array([0, 1000, 1000, max(61_000, 1000 + right)])
            end = begin + np.array([1000, 60_000, right, 5000])
            run = Ran(begin, end, np.array([0, 0, 1, 0]), [], 0, int(end[3]))
            rows.append(tables(graph, [run], scene, launch, 1, 2))
        calls, steps = (pd.concat([row[place] for row in rows]) for place in (0, 1))
        parts.append(path_traces(calls, steps, *graph_tables(graph)))
    paths_ = PathTraces.together(parts)
    effects = path_effects(paths_).set_index("part")["difference_ms"]
    assert effects["step"] == pytest.approx(0.03)
    assert effects["path"] == pytest.approx(0.03)
    assert effects.drop(["step", "path"]).abs().max() == 0
    changes = path_changes(paths_).set_index("operation")
    assert changes["change"].to_dict() == {"layer/op_1": "leaves", "layer/op_2": "enters"}
    assert changes["path_ms"].to_dict() == pytest.approx({"layer/op_1": -0.06, "layer/op_2": 0.09})


def test_a_trace_of_another_graph_has_a_reason_and_no_path() -> None:
    dice = np.random.default_rng(1)
    graph = random_graph(dice, 20, 40)
    run = executed(graph, dice.integers(1000, 9000, 20), 1, dice)
    nodes, edges = graph_tables(graph)
    nodes.loc[nodes["node"] >= 10, "operation"] = "another"
    scenes = critical_path(path_traces(*tables(graph, [run]), nodes, edges))
    assert scenes["launches"].tolist() == [0]
    assert "another graph" not in scenes["reason"].iloc[0]
    assert scenes["reason"].iloc[0].startswith("nodes of the graph account for")


def _drawn(dice: np.random.Generator, studies: int, launches: int) -> PathTraces:
    """So many studies, whose launches differ, of one operation on the path, and waits."""
    number = np.arange(studies * launches)
    parts = []
    for kind, mix, works, waits in (("alone", "", 4.0, 2.0), ("corun", "lead+stream", 4.4, 2.6)):
        common = {
            "study": [f"s{each}" for each in number // launches], "cohort": "c", "launch": number % launches,
            "scene": kind, "kind": kind, "mix": mix, "partition": "unmanaged", "member": "lead@0",
            "platform": "modelled", "round": 1,
        }  # fmt: skip
        compute, idle = (mean * (1 + dice.normal(0, 0.03, len(number))) for mean in (works, waits))
        traces = dict.fromkeys(["before_ms", "batch_ms", "other_ms", "after_ms"], 0.1) | {"threads": 1, "reason": ""}
        traces |= {"compute_ms": compute, "idle_ms": idle, "step_ms": compute + idle + 0.4}
        one = {"on_schedule_path": 1.0, "path_ms": compute} | called(1)
        parts.append((pd.DataFrame(common | traces), pd.DataFrame(common | one)))
    return PathTraces(*(pd.concat([part[place] for part in parts], ignore_index=True) for place in (0, 1)))


@pytest.mark.simulation
def test_intervals_between_launches_hold_the_truth() -> None:
    found = path_effects(_drawn(np.random.default_rng(1), 1000, 4))
    shares = []
    for part, truth in (("slower", 0.4), ("idle", 0.6), ("step", 1.0)):
        rows = found[found["part"] == part]
        shares.append(float(((rows["difference_low"] < truth) & (truth < rows["difference_high"])).mean()))
    assert_told("path_effects", "difference_low", *shares)


def test_a_graph_is_exported_in_every_format(tmp_path: Path, made: Results) -> None:
    """The picture has names and details as text; the other formats have all nodes, edges and what is unknown."""
    found = graph_study(made, "lead@0+stream@1")
    assert found.beside == "stream"
    for format_ in FORMATS:
        write_graph(found, format_, LOSS, tmp_path / f"g.{format_}")
    picture = ElementTree.parse(tmp_path / "g.svg").getroot()
    texts = [each.text or "" for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert any("layer/op" in text for text in texts)
    assert any("computed" in text and "estimated" in text for text in texts)
    drawn = nx.read_graphml(tmp_path / "g.graphml")
    assert (len(drawn), drawn.number_of_edges()) == (30, len(found.edges))
    assert drawn.nodes["3"]["type"] == "MatMul"
    written = json.loads((tmp_path / "g.json").read_text())
    assert [node["bytes"] for node in written["nodes"]] == [None] * 30
    assert written["about"]["flops"] == "estimated"
    lost = {node["operation"]: node["lost_ms"] for node in written["nodes"]}
    assert all(value > 0 for value in lost.values())
    with pytest.raises(CastmatesError, match=r"'other' is no lead or mix .* there are: lead@0, lead@0\+stream@1"):
        graph_study(made, "other")
    with pytest.raises(CastmatesError, match="has no graph"):
        graph_study(replace(made, dataflow_nodes=made.dataflow_nodes.iloc[:0]), "lead")


def test_a_mix_shows_its_own_path_and_what_enters_or_leaves_it(tmp_path: Path, made: Results) -> None:
    mix = "lead@0+stream@1"
    rows = made.path_operations.reset_index(drop=True)
    here = rows.index[rows["mix"] == mix]
    enters, leaves = (rows.loc[here[place], "operation"] for place in (0, 1))
    rows.loc[here, "on_schedule_path"] = np.where(rows.loc[here, "operation"] == enters, 1.0, 0.0)
    row = made.path_changes.iloc[0].to_dict() | {"mix": mix, "partition": "unmanaged", "type": "MatMul"}
    types = rows.loc[here].set_index("operation")["type"]
    changes = [
        row | {"operation": name, "type": types[name], "change": change}
        for name, change in ((enters, "enters"), (leaves, "leaves"))
    ]
    made = replace(made, path_operations=rows, path_changes=pd.DataFrame(changes))
    alone, both = graph_study(made, "lead"), graph_study(made, mix)
    scenes = made.critical_path.set_index("mix")["step_ms"]
    assert f"a step alone, {scenes['']:.2f} ms" in alone.path_words
    assert f"a step beside stream, {scenes[mix]:.2f} ms" in both.path_words
    named = both.nodes.set_index("operation")
    assert named["on_schedule_path"].to_dict() == {name: float(name == enters) for name in named.index}
    assert named["alone_on_schedule_path"].tolist() == alone.nodes["on_schedule_path"].tolist()
    assert named["change"][[enters, leaves]].tolist() == ["enters", "leaves"]
    assert set(named["change"].drop([enters, leaves])) == {"stays"}
    write_graph(both, "svg", "time", tmp_path / "g.svg", every=True)
    boxes = [each.get("class") or "" for each in ElementTree.parse(tmp_path / "g.svg").getroot().iter()]
    assert sorted(box.split()[-1] for box in boxes if "enters" in box or "leaves" in box) == ["enters", "leaves"]
    chain = int((named["on_graph_path"] >= 0.5).sum())
    assert sum(box.startswith("box path") for box in boxes) == chain > 0


def test_what_cannot_be_drawn_is_a_sentence(tmp_path: Path, made: Results) -> None:
    alone = replace(made, path_effects=made.path_effects.iloc[:0], path_operations=made.path_operations.iloc[:0])
    with pytest.raises(CastmatesError, match="was not traced beside others"):
        write_graph(graph_study(alone, ""), "svg", LOSS, tmp_path / "g.svg")
    assert not (tmp_path / "g.svg").exists()
    two = pd.concat([made.dataflow_nodes, made.dataflow_nodes.assign(member="other@0")])
    with pytest.raises(CastmatesError, match=r"2 leads; name one of: lead@0, other@0, lead@0\+stream@1\."):
        graph_study(replace(made, dataflow_nodes=two), "")


def test_a_study_that_was_traced_alone_has_graphs_without_effects(tmp_path: Path) -> None:
    study_ = results(tmp_path / "study")
    asking = study_.plan.model_copy(update={"profiles": study_.plan.launches[:1]})
    study_.folder.plan_file.write_text(asking.canonical())
    names = ("critical_path", "path_operations", "path_effects", "path_changes")
    for name in ("dataflow_nodes", "dataflow_edges", *names):
        getattr(study_, name).to_parquet(study_.folder.tables / f"{name}.parquet")
    for file in study_.folder.tables.glob("effects.*"):
        file.unlink()
    done = CliRunner().invoke(app, ["trace", "graph", str(study_.folder.path), "--format", "json"])
    assert done.exit_code == 0, done.exception
    assert "Path of the schedule of a step alone" in done.output


def test_the_page_names_what_a_path_consists_of(tmp_path: Path, made: Results) -> None:
    found = context(made)
    (graph,) = found["graphs"]
    assert graph["file"] == "../graphs/lead%400.svg"
    assert "(computed)" in found["sentences"][0]
    assert found["changes"]
    assert context(read_results(make(tmp_path / "none", launches=3, rounds=1))) == {}
