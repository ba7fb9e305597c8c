"""Members find their memory on the nodes that they are bound to; the runner keeps its own policy."""

import subprocess
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.linux.memory_binding import memory_bound_to
from castmates.machine.topology import read_topology
from castmates.runner.processes.launch import Start, clean_environment, launch
from tests.waiting import wait_for

NODE = read_topology().memory[:1]
pytestmark = pytest.mark.needs("nodes")


def policies(pid: int | str) -> set[str]:
    """The memory policies of a process's stack and heap, such as `default` and `bind:0`.

    Some memory allocators give their mappings a separate policy, whatever the process's is.
    """
    lines = [line.split() for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines()]
    return {policy for _, policy, *rest in lines if {"stack", "heap"} & set(rest)}


def started(nodes: tuple[int, ...], tmp_path: Path) -> set[str]:
    start = Start(
        name=f"sleeper{nodes}",
        cpus=read_topology().allowed[:1],
        nodes=nodes,
        command=["sh", "-c", "sleep 20 & wait"],
        environment=clean_environment({}, (0,), tmp_path, {}),
        ready_within=5,
    )
    running = launch(start, tmp_path, tmp_path, lambda *_: None)
    try:
        file = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        children = wait_for(lambda: file.read_text().split(), "the member has a child")
        return policies(running.pid) | policies(children[0])
    finally:
        subprocess.run(["kill", "-9", "--", f"-{running.pid}"], check=True)
        running.process.wait()


def test_a_bound_member_and_its_children_are_bound(tmp_path):
    assert started(NODE, tmp_path) == {f"bind:{NODE[0]}"}
    assert policies("self") == {"default"}


def test_a_member_without_nodes_is_left_alone(tmp_path):
    assert started((), tmp_path) == {"default"}


def test_the_runners_own_policy_comes_back():
    with memory_bound_to(NODE):
        assert policies("self") == {f"bind:{NODE[0]}"}
        with memory_bound_to(NODE):
            pass
        assert policies("self") == {f"bind:{NODE[0]}"}
    assert policies("self") == {"default"}


def test_a_node_that_cannot_be_used_is_said():
    with (
        pytest.raises(CastmatesError, match=r"memory cannot be bound to node 1000: .*cpuset"),
        memory_bound_to((1000,)),
    ):
        pass
    assert policies("self") == {"default"}
