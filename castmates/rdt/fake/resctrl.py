"""A resctrl file system in memory."""

import errno
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from castmates.rdt.fake.group import READ, WRITE, Flock, Group, Handle, Node, allowed, is_root, walk, walk_to_parent
from castmates.rdt.fake.kernel import V6_12, Kernel, refusal
from castmates.rdt.fake.layout import FOLDER, Layout
from castmates.rdt.fake.machine import FakeMachine
from castmates.rdt.fake.monitors import SetNumbers, Source
from castmates.rdt.fake.shape import LAB, Shape


@dataclass(frozen=True, slots=True)
class Stat:
    """What stat(2) shows of a file or folder."""

    mode: int  # with its type
    uid: int
    gid: int


class FakeResctrl(FakeMachine):
    """A machine with a kernel's resctrl, which is mounted unless `options` is None.

    It is a castmates.rdt.resctrl.tree.Tree: paths are relative to the mount point, and every refusal is an OSError
    with the kernel's errno. What else the kernel lets one do are the methods besides.
    """

    def __init__(
        self,
        shape: Shape = LAB,
        kernel: Kernel = V6_12,
        source: Source | None = None,
        options: str | None = "",
        mount_point: str = "/sys/fs/resctrl",
    ) -> None:
        super().__init__(shape, kernel, source or SetNumbers(), mount_point)
        self._flock = Flock()
        if options is not None and self.known:
            self.mount(options)

    # The tree.

    def read(self, path: str) -> str:
        """Return the text of a file."""
        with self.open(path, "r") as handle:
            return handle.read().decode("utf-8", "surrogateescape")

    def write(self, path: str, text: str) -> None:
        """Give a file this text in one write(2)."""
        with self.open(path, "w") as handle:
            handle.write(text.encode("utf-8", "surrogateescape"))

    def make(self, path: str, mode: int = FOLDER) -> None:
        """Make a group: mkdir(2)."""
        with self._call(path):
            folder, name = self._place(path, exists=False)
            layout = self._layout
            if layout is None:
                raise refusal(errno.EPERM)
            if "\n" in name:
                raise refusal(errno.EINVAL)
            if self.shape.allocates and folder is layout.root:
                self._make_control(layout, name, mode)
            else:
                self._make_monitoring(layout, folder, name, mode)

    def _make_control(self, layout: Layout, name: str, mode: int) -> None:
        if self.kernel.clears_on_mkdir:
            self._status.clear()
        layout.add_group(layout.root, name, mode, lambda: layout.groups.make_control(name))

    def _make_monitoring(self, layout: Layout, folder: Node, name: str, mode: int) -> None:
        if not self.shape.monitors:
            raise refusal(errno.EPERM)
        if folder.group is None:
            raise refusal(self.kernel.mkdir_in_info)
        if self.kernel.clears_on_mkdir:
            self._status.clear()
        if folder.name != "mon_groups" or name == "mon_groups":
            raise refusal(errno.EPERM)
        control = folder.group
        layout.add_group(folder, name, mode, lambda: layout.groups.make_monitoring(control, name))

    def remove(self, path: str) -> None:
        """Remove a group: rmdir(2)."""
        with self._call(path):
            folder, name = self._place(path, exists=True, at_root=errno.EBUSY)
            node = folder.children[name]
            if node.content is not None:
                raise refusal(errno.ENOTDIR)
            if self._layout is None or node.group is None or not self._is_group(node):
                raise refusal(errno.EPERM)
            self._layout.groups.remove(node.group)
            node.remove()

    def names(self, path: str) -> list[str]:
        """Name the files and folders in a folder, sorted."""
        with self._call(path):
            node = self._find(path)
            if node.content is not None:
                raise refusal(errno.ENOTDIR)
            if not allowed(node, self._caller, READ):
                raise refusal(errno.EACCES)
            return sorted(node.children)

    def locked(self, exclusive: bool = True) -> AbstractContextManager[None]:
        """Hold the flock(2) of the root; a thread that asks twice gets EDEADLK where the kernel would let it wait."""
        if not self.known:
            raise OSError(errno.ENOENT, "No such file or directory", self.mount_point)
        return self._flock.held(exclusive)

    # What else the kernel offers there.

    def open(self, path: str, mode: str = "r", create: bool = False) -> Handle:
        """Open a file: "r", "w" or "rw"; truncating and appending change nothing, creating is refused."""
        with self._call(path):
            try:
                node = self._find(path)
            except FileNotFoundError:
                if create:
                    self._place(path, exists=False)
                    raise refusal(errno.EACCES) from None
                raise
            if node.content is None:
                raise refusal(errno.EISDIR)
            reads, writes = "r" in mode, "w" in mode
            wanted = (READ if reads else 0) | (WRITE if writes else 0)
            # Where no permission bit is set, root has no permission either.
            anybody = node.mode | node.mode >> 3 | node.mode >> 6
            if not allowed(node, self._caller, wanted) or (anybody & wanted) != wanted:
                raise refusal(errno.EACCES)
            if writes and node.content.of_event:
                raise refusal(errno.EACCES)
            handle = Handle(node, reads, writes, self._mutex, self._open.discard)
            self._open.add(handle)
            return handle

    def rename(self, old: str, new: str) -> None:
        """Rename a monitoring group, or move it to another control group."""
        with self._call(old):
            node, target, new_name = self._looked_up(old, new)
            there = target.children.get(new_name)
            if there is node:
                return
            if there is not None and (there.content is None) != (node.content is None):
                raise refusal(errno.EISDIR if there.content is None else errno.ENOTDIR)
            if self._layout is None or not self.kernel.renames:
                raise refusal(errno.EPERM)
            if node.group is None or target.group is None:
                raise refusal(errno.ENOENT)
            self._status.clear()
            self._check_rename(node, node.group.control, target, new_name)
            if there is not None:
                raise refusal(errno.EEXIST)
            self._layout.groups.move(node.group, target.group, new_name)
            node.rename(target, new_name)

    def _looked_up(self, old: str, new: str) -> tuple[Node, Node, str]:
        """Find what is to be renamed, the folder it is to go to, and its name there, in the order of path lookup."""
        inside = [path for path in (old, new) if not is_root(path)]
        for path in inside:
            walk_to_parent(self._root, path, self._caller, errno.EXDEV)
        if len(inside) < 2:
            raise refusal(errno.EXDEV)  # the folder of the mount point lies in another file system
        folder, name = self._place(old, exists=True)
        target, new_name = self._place(new, exists=None)
        if folder.children[name] in target.lineage():
            raise refusal(errno.EINVAL)
        if target.children.get(new_name) in list(folder.lineage()):
            raise refusal(errno.ENOTEMPTY)
        return folder.children[name], target, new_name

    def _check_rename(self, node: Node, control: Group | None, target: Node, new_name: str) -> None:
        refused = ""
        if node.content is not None:
            refused = "Source and destination must be directories"
        elif control is None or not self._is_group(node):
            refused = "Source must be a MON group"
        elif target.name != "mon_groups" or new_name == "mon_groups":
            refused = "Destination must be a mon_groups subdirectory"
        elif node.group is not None and node.group.cpus and control is not target.group:
            refused = "Cannot move a MON group that monitors CPUs"
        if refused:
            self._status.say(refused)
            raise refusal(errno.EPERM)

    def unlink(self, path: str) -> None:
        """Refuse to remove a file."""
        with self._call(path):
            folder, name = self._place(path, exists=True, at_root=errno.EISDIR)
            raise refusal(errno.EISDIR if folder.children[name].content is None else errno.EPERM)

    def symlink(self, path: str) -> None:
        """Refuse to make a symbolic link."""
        with self._call(path):
            self._place(path, exists=False)
            raise refusal(errno.EPERM)

    def chmod(self, path: str, mode: int) -> None:
        """Change permission bits; for root and the owner."""
        with self._call(path):
            node = self._find(path)
            if self._caller.uid not in (0, node.uid):
                raise refusal(errno.EPERM)
            node.mode = mode & 0o7777

    def chown(self, path: str, uid: int, gid: int) -> None:
        """Give a file or folder to a user; for root."""
        with self._call(path):
            node = self._find(path)
            if self._caller.uid != 0:
                raise refusal(errno.EPERM)
            node.uid, node.gid = uid, gid

    def stat(self, path: str) -> Stat:
        """Return type, permission bits and owner."""
        with self._call(path):
            node = self._find(path)
            kind = stat.S_IFDIR if node.content is None else stat.S_IFREG
            return Stat(kind | node.mode, node.uid, node.gid)

    # How a call finds its way.

    @contextmanager
    def _call(self, path: str) -> Iterator[None]:
        with self._mutex:
            try:
                yield
            except OSError as error:
                if error.filename is None:
                    error.filename = f"{self.mount_point}/{path}".rstrip("/")
                raise

    @property
    def _root(self) -> Node:
        if not self.known:
            raise refusal(errno.ENOENT)
        return self._bare if self._layout is None else self._layout.root

    def _find(self, path: str) -> Node:
        return walk(self._root, path, self._caller)

    def _place(self, path: str, exists: bool | None, at_root: int = errno.EEXIST) -> tuple[Node, str]:
        """Find the folder that a call is to change, and the name in it that must exist, or must not."""
        folder, name = walk_to_parent(self._root, path, self._caller, at_root)
        if exists is True and name not in folder.children:
            raise refusal(errno.ENOENT)
        if exists is False and name in folder.children:
            raise refusal(errno.EEXIST)
        if not allowed(folder, self._caller, WRITE):
            raise refusal(errno.EACCES)
        return folder, name

    def _is_group(self, node: Node) -> bool:
        """Check whether a folder is a group's own, and not one inside it or the root."""
        if node.group is None or node.parent is None or node.content is not None:
            return False
        if node.group.control is None:
            return node.parent is self._root and node.group.name != ""  # the default group has no separate folder
        return node.parent.name == "mon_groups"
