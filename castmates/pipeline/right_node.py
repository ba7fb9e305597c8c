"""Refuses a launch on a node that is not of its class, and notes what the next attempt has to know."""

from castmates.results.folder import StudyFolder
from castmates.results.node_notes import node_here, note_attempt, note_refusal
from castmates.runner.node_check import OtherNode, refuse_other_node
from castmates.study.plan_text import Task


def refuse_wrong_node(folder: StudyFolder, task: Task, path: str) -> None:
    """Note the attempt at the launch of this path, and refuse it on another node than it was planned for."""
    node = node_here()
    if node:
        note_attempt(folder, path, node)
    try:
        refuse_other_node(task.launch, task.machines)
    except OtherNode:
        if node:
            note_refusal(folder, task.launch.cohort.machine, node)
        raise
