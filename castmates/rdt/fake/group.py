"""One group of a mount: a control group, or a monitoring group within one."""

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from castmates.rdt.fake.kernel import Thread, refusal

SHAREABLE = "shareable"


@dataclass(eq=False)
class Group:
    """A control group, or a monitoring group within one."""

    name: str  # "" is the default group
    closid: int
    rmid: int
    control: "Group | None" = None  # of a monitoring group: the control group that it is part of
    mode: str = SHAREABLE
    cpus: set[int] = field(default_factory=set)
    monitoring: list["Group"] = field(default_factory=list)  # its monitoring groups
    removed: bool = False

    @property
    def path(self) -> str:
        """Where it lies in the tree."""
        if self.control is None:
            return self.name
        return f"{self.control.name}/mon_groups/{self.name}".lstrip("/")


# Folders and files of the tree: names, owners, permissions, and what stands behind them.

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
    """Check whether permission bits let a caller do this; root may do everything."""
    if caller.uid == 0:
        return True
    shift = 6 if caller.uid == node.uid else 3 if caller.gid == node.gid else 0
    return (node.mode >> shift & wanted) == wanted


def is_root(path: str) -> bool:
    """Check whether a path is that of the mount point itself."""
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


# Open files, which outlive their names.

PAGE = 4096  # bytes that one write may have


class Handle:
    """One open file; each write is a separate command."""

    def __init__(
        self,
        node: Node,
        reads: bool,
        writes: bool,
        mutex: AbstractContextManager[bool],
        closed: Callable[["Handle"], None],
    ) -> None:
        self._node, self._reads, self._writes, self._mutex, self._closed = node, reads, writes, mutex, closed
        self._text: bytes | None = None
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """Read on in the text that the first read found."""
        with self._mutex:
            self._check(self._reads)
            if self._text is None:
                self._text = self._show()
            end = len(self._text) if size < 0 else self._position + size
            part = self._text[self._position : end]
            self._position += len(part)
            return part

    def pread(self, size: int, offset: int) -> bytes:
        """Read from an offset; from 0 what the file holds now."""
        with self._mutex:
            self._check(self._reads)
            if offset == 0 or self._text is None:
                self._text = self._show()
            return self._text[offset : offset + size]

    def rewind(self) -> None:
        """Go back to the beginning, so that the next read finds what the file holds then."""
        self._text, self._position = None, 0

    def write(self, data: bytes) -> int:
        """Give the file a command."""
        with self._mutex:
            self._check(self._writes)
            if len(data) > PAGE:
                raise refusal(errno.E2BIG)
            content = self._node.content
            if content is None or content.store is None:
                raise refusal(errno.EINVAL)
            content.store(data)
            return len(data)

    def close(self) -> None:
        """Let go of it."""
        self._closed(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _show(self) -> bytes:
        assert self._node.content is not None
        return self._node.content.show().encode("utf-8", "surrogateescape")

    def _check(self, may: bool) -> None:
        if not may:
            raise refusal(errno.EBADF)
        if self._node.gone:
            raise refusal(errno.ENODEV)


# flock(2) on the root of the tree, between the threads of this process.


class Flock:
    """A lock that many may share or one may have."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holders: dict[int, bool] = {}  # thread -> whether it has the lock for itself

    @contextmanager
    def held(self, exclusive: bool) -> Iterator[None]:
        """Wait for the lock and hold it."""
        me = threading.get_ident()
        with self._changed:
            if me in self._holders:
                # With flock(2) on two descriptors a thread would wait for itself for ever.
                raise refusal(errno.EDEADLK)
            self._changed.wait_for(lambda: not self._holders if exclusive else not any(self._holders.values()))
            self._holders[me] = exclusive
        try:
            yield
        finally:
            with self._changed:
                del self._holders[me]
                self._changed.notify_all()
