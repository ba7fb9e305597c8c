"""Folders and files of the tree: names, owners, permissions, and what stands behind them."""

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from castmates.rdt.fake.group import Group
from castmates.rdt.fake.processes import Thread
from castmates.rdt.fake.texts import refusal

READ, WRITE, SEARCH = 4, 2, 1
LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class Content:
    """What reading a file gives and writing to it does."""

    show: Callable[[], str]
    store: Callable[[bytes], None] | None = None  # None: any write is refused
    of_event: bool = False  # cannot be opened for writing at all


@dataclass(eq=False)
class Node:
    """A folder, or a file where it has content."""

    name: str
    mode: int  # permission bits
    parent: "Node | None"
    group: Group | None  # None at and below info
    uid: int = 0
    gid: int = 0
    content: Content | None = None
    gone: bool = False

    def __post_init__(self) -> None:
        self.children: dict[str, Node] = {}
        if self.parent is not None:
            self.parent.children[self.name] = self

    def subtree(self) -> Iterator["Node"]:
        """Return this and everything below it."""
        yield self
        for child in self.children.values():
            yield from child.subtree()

    def lineage(self) -> Iterator["Node"]:
        """Return this and every folder above it."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def remove(self) -> None:
        """Take it out of the tree; who has it open gets ENODEV from now on."""
        for node in self.subtree():
            node.gone = True
        if self.parent is not None:
            del self.parent.children[self.name]

    def rename(self, parent: "Node", name: str) -> None:
        """Hang it in elsewhere."""
        if self.parent is not None:
            del self.parent.children[self.name]
        self.parent, self.name = parent, name
        parent.children[name] = self


def allowed(node: Node, caller: Thread, wanted: int) -> bool:
    """Say whether permission bits let a caller do this; root may do everything."""
    if caller.uid == 0:
        return True
    shift = 6 if caller.uid == node.uid else 3 if caller.gid == node.gid else 0
    return (node.mode >> shift & wanted) == wanted


def is_root(path: str) -> bool:
    """Say whether a path is that of the mount point itself."""
    return not _names(path)


def walk(root: Node, path: str, caller: Thread) -> Node:
    """Find a file or folder as path lookup does."""
    node = root
    for name in _names(path):
        node = _step(node, name, caller)
    if path.endswith("/") and node.content is not None:
        raise refusal(errno.ENOTDIR)
    return node


def walk_to_parent(root: Node, path: str, caller: Thread, at_root: int) -> tuple[Node, str]:
    """Find the folder in which the last name of a path lies or would lie; the mount point itself is refused."""
    names = _names(path)
    if not names or names[-1] == "..":
        raise refusal(at_root)
    folder = root
    for name in names[:-1]:
        folder = _step(folder, name, caller)
    if folder.content is not None:
        raise refusal(errno.ENOTDIR)
    if not allowed(folder, caller, SEARCH):
        raise refusal(errno.EACCES)
    return folder, names[-1]


def _names(path: str) -> list[str]:
    if len(path.encode("utf-8", "surrogateescape")) >= LONGEST_PATH:
        raise refusal(errno.ENAMETOOLONG)
    return [name for name in path.split("/") if name not in ("", ".")]


def _step(folder: Node, name: str, caller: Thread) -> Node:
    if folder.content is not None:
        raise refusal(errno.ENOTDIR)
    if not allowed(folder, caller, SEARCH):
        raise refusal(errno.EACCES)
    if name == "..":
        return folder.parent or folder
    if name not in folder.children:
        raise refusal(errno.ENOENT)
    return folder.children[name]
