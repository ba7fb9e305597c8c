"""Which files a mount, a group and a domain have, and what stands behind each of them."""

import errno
from collections.abc import Callable
from functools import partial

from castmates.rdt.fake.controls import Schema, Writer
from castmates.rdt.fake.group import SHAREABLE, Content, Group, Node
from castmates.rdt.fake.groups import Groups
from castmates.rdt.fake.kernel import (
    Thread,
    c_string,
    parse_cpu_list,
    parse_cpu_mask,
    refusal,
    show_cpu_list,
    show_cpu_mask,
    signed,
    strip,
    unsigned,
)
from castmates.rdt.fake.shape import Throttle, Ways

FIXED, MUTABLE, FOLDER = 0o444, 0o644, 0o755
ROOT_FOLDER = 0o555
_COUNTED = {"mbm_total_bytes": "0x7f", "mbm_local_bytes": "0x15"}  # at the begin, by events that can be chosen


class Layout:
    """Builds nodes for one mount."""

    def __init__(
        self, groups: Groups, debug: bool, caller: Callable[[], Thread], online: Callable[[], set[int]]
    ) -> None:
        self.groups, self.debug, self.caller, self.online = groups, debug, caller, online
        self.shape, self.kernel = groups.controls.shape, groups.kernel
        self.status = groups.status
        self.root = Node("", ROOT_FOLDER, None, groups.default)
        self._add_info()
        self._add_files(self.root, groups.default)
        self._add_folders(self.root, groups.default)

    def add_group(self, folder: Node, name: str, mode: int, make: Callable[[], Group]) -> Node:
        """Make a group and its files."""
        group = make()
        node = self._folder(folder, name, mode, group)
        self._add_files(node, group)
        self._add_folders(node, group)
        return node

    def _folder(self, parent: Node, name: str, mode: int, group: Group | None) -> Node:
        user = self.caller()
        return Node(name, mode, parent, group, user.uid, user.gid)

    def _file(self, folder: Node, name: str, mode: int, content: Content) -> None:
        user = self.caller()
        Node(name, mode, folder, folder.group, user.uid, user.gid, content)

    def _add_files(self, folder: Node, group: Group) -> None:
        def add(name: str, show: Callable[[], str], store: Callable[[bytes], None] | None = None) -> None:
            self._file(folder, name, MUTABLE if store else FIXED, Content(show, store))

        controls = self.groups.controls
        add(
            "cpus",
            lambda: show_cpu_mask(group.cpus, self.shape.possible) + "\n",
            self._cpus_writer(group, parse_cpu_mask),
        )
        add("cpus_list", lambda: show_cpu_list(group.cpus) + "\n", self._cpus_writer(group, parse_cpu_list))
        add(
            "tasks",
            lambda: "".join(f"{thread.tid}\n" for thread in self.groups.threads(group)),
            self._tasks_writer(group),
        )
        counters = self.groups.monitors.counters
        if counters.known:
            add(
                "mbm_L3_assignments",
                lambda: counters.show_group(group.rmid),
                lambda data: counters.change_group(group.rmid, c_string(data)),
            )
        if self.debug and self.shape.monitors:
            add("mon_hw_id", lambda: f"{group.rmid}\n")
        if group.control is not None:
            return
        if self.debug:
            add("ctrl_hw_id", lambda: f"{group.closid}\n")
        add("schemata", lambda: controls.show(group.closid), self._schemata_writer(group))
        add("size", lambda: controls.show_sizes(group.closid))
        add("mode", lambda: f"{group.mode}\n", self._mode_writer(group))

    def _add_folders(self, folder: Node, group: Group) -> None:
        if not self.shape.monitors:
            return
        data = self._folder(folder, "mon_data", folder.mode, group)
        for domain in sorted({domain for domain, cpus in self.shape.domains.items() if self.online() & set(cpus)}):
            self._add_domain(data, domain)
        if group.control is None:
            self._folder(folder, "mon_groups", folder.mode, group)

    def _add_domain(self, data: Node, domain: int) -> None:
        folder = self._folder(data, f"mon_L3_{domain:02d}", data.mode, data.group)
        clusters = self.shape.nodes.get(domain, ())
        nodes = clusters if self.kernel.knows_clusters else ()
        inner = [self._folder(folder, f"mon_sub_L3_{node:02d}", data.mode, data.group) for node in nodes]
        # A kernel that knows no clusters reads the counters of the first one, and takes them for the cache's.
        whole = 1 if self.kernel.knows_clusters or not clusters else len(clusters)
        for event in self.shape.events:
            for place, parts in ((folder, whole), *((node, len(nodes)) for node in inner)):
                show = self._event_reader(data.group, event, domain, parts)
                self._file(place, event, FIXED, Content(show, of_event=True))

    def _event_reader(self, group: Group | None, event: str, domain: int, parts: int) -> Callable[[], str]:
        assert group is not None
        return lambda: self.groups.monitors.show(group, event, domain, parts)

    def add_domain(self, domain: int) -> None:
        """Give every group the event files of a domain that has come online."""
        for node in list(self.root.subtree()):
            if node.name == "mon_data" and node.parent is not None and node.parent.group is node.group:
                self._add_domain(node, domain)

    def drop_domain(self, domain: int) -> None:
        """Take them away."""
        for node in list(self.root.subtree()):
            parent = node.parent
            if node.name == f"mon_L3_{domain:02d}" and parent is not None and parent.name == "mon_data":
                node.remove()

    def _add_info(self) -> None:
        info = Node("info", ROOT_FOLDER, self.root, None)
        self._file(info, "last_cmd_status", FIXED, Content(self.status.show))
        for schema in self.groups.controls.schemas:
            folder = Node(schema.name, ROOT_FOLDER, info, None)
            texts = self._info_of_masks(schema, schema.ways) if schema.ways else self._info_of_bandwidth(schema)
            for name, show in texts.items():
                self._file(folder, name, FIXED, Content(show))
            if schema.masks and self.kernel.allocates_io and self.shape.io_alloc:
                self._add_io_allocation(folder, schema)
        if self.shape.monitors:
            self._add_info_of_monitors(Node("L3_MON", ROOT_FOLDER, info, None))

    def _info_of_masks(self, schema: Schema, ways: Ways) -> dict[str, Callable[[], str]]:
        files: dict[str, Callable[[], str]] = {
            "num_closids": lambda: f"{schema.closids}\n",
            "cbm_mask": lambda: f"{ways.full:x}\n",
            "min_cbm_bits": lambda: f"{ways.least_bits}\n",
            "shareable_bits": lambda: f"{ways.shareable:x}\n",
            "bit_usage": lambda: self.groups.controls.show_usage(schema, self.groups.modes),
        }
        if self.kernel.tells_sparse:
            files["sparse_masks"] = lambda: f"{ways.sparse:d}\n"
        return files

    def _add_io_allocation(self, folder: Node, schema: Schema) -> None:
        controls = self.groups.controls

        def store(data: bytes) -> None:
            self.status.clear()
            controls.give_to_io(bool(unsigned(c_string(data), 10)), self.groups.modes, self.status)

        state = Content(lambda: ("enabled" if controls.io else "disabled") + "\n", store)
        self._file(folder, "io_alloc", MUTABLE, state)

        def store_masks(data: bytes) -> None:
            _need_newline(data)
            self.status.clear()
            every = controls.masks_of_io(schema, self.status)
            text = c_string(data[:-1])
            if text.startswith("*="):
                text = ";".join(f"{at}={text.removeprefix('*=')}" for at in every)
            highest = controls.closids - 1
            Writer(controls, highest, {**self.groups.modes, highest: SHAREABLE}, self.status).write_for_io(schema, text)

        masks = Content(lambda: controls.show_masks_of_io(schema, self.status), store_masks)
        self._file(folder, "io_alloc_cbm", MUTABLE, masks)

    def _info_of_bandwidth(self, schema: Schema) -> dict[str, Callable[[], str]]:
        throttle = schema.throttle or Throttle()
        files: dict[str, Callable[[], str]] = {
            "num_closids": lambda: f"{schema.closids}\n",
            "min_bandwidth": lambda: f"{throttle.least}\n",
            "bandwidth_gran": lambda: f"{throttle.step}\n",
            "delay_linear": lambda: f"{throttle.linear:d}\n",
        }
        if throttle.mode:
            files["thread_throttle_mode"] = lambda: f"{throttle.mode}\n"
        return files

    def _add_info_of_monitors(self, folder: Node) -> None:
        rmids = self.groups.rmids

        def set_threshold(data: bytes) -> None:
            rmids.set_threshold(unsigned(c_string(data), 0, bits=32))

        self._file(folder, "num_rmids", FIXED, Content(lambda: f"{self.shape.rmids}\n"))
        self._file(folder, "mon_features", FIXED, Content(lambda: "".join(f"{name}\n" for name in self._features())))
        for event in _COUNTED if self.shape.configurable else ():
            self._file(folder, f"{event}_config", FIXED, Content(partial(self._counted, event)))
        threshold = Content(lambda: f"{rmids.threshold}\n", set_threshold)
        self._file(folder, "max_threshold_occupancy", MUTABLE, threshold)
        counters = self.groups.monitors.counters
        if counters.told:
            modes = Content(counters.show_modes, self._mode_of_counters)
            self._file(folder, "mbm_assign_mode", MUTABLE, modes)
        if counters.known:
            self._file(folder, "num_mbm_cntrs", FIXED, Content(lambda: counters.show_numbers(free=False)))
            self._file(folder, "available_mbm_cntrs", FIXED, Content(lambda: counters.show_numbers(free=True)))

    def _mode_of_counters(self, data: bytes) -> None:
        _need_newline(data)
        self.groups.monitors.counters.set_mode(c_string(data[:-1]))

    def _counted(self, event: str) -> str:
        return ";".join(f"{domain}={_COUNTED[event]}" for domain in self.shape.domains) + "\n"

    def _features(self) -> list[str]:
        """Name the events; where what they count can be chosen, a file of that for each follows it."""
        more = _COUNTED if self.shape.configurable else ()
        return [name for event in self.shape.events for name in (event, *[f"{event}_config"] * (event in more))]

    def _schemata_writer(self, group: Group) -> Callable[[bytes], None]:
        def store(data: bytes) -> None:
            _need_newline(data)
            self.status.clear()
            Writer(self.groups.controls, group.closid, self.groups.modes, self.status).write(data)

        return store

    def _mode_writer(self, group: Group) -> Callable[[bytes], None]:
        def store(data: bytes) -> None:
            _need_newline(data)
            self.status.clear()
            self.groups.set_mode(group, c_string(data[:-1]))

        return store

    def _cpus_writer(self, group: Group, parse: Callable[[str, int], frozenset[int]]) -> Callable[[bytes], None]:
        def store(data: bytes) -> None:
            if self.kernel.clears_on_cpus:
                self.status.clear()
            try:
                cpus = parse(c_string(data), self.shape.possible)
            except OSError:
                self.status.say("Bad CPU list/mask")
                raise
            if cpus - self.online():
                self.status.say("Can only assign online CPUs")
                raise refusal(errno.EINVAL)
            self.groups.assign_cpus(group, cpus)

        return store

    def _tasks_writer(self, group: Group) -> Callable[[bytes], None]:
        def store_one(data: bytes) -> None:
            try:
                tid = signed(strip(c_string(data)), 0)
            except OSError:
                raise refusal(errno.EINVAL) from None
            if tid < 0:
                raise refusal(errno.EINVAL)
            self.status.clear()
            self._move(group, tid)

        def store_list(data: bytes) -> None:
            self.status.clear()
            rest: str | None = c_string(data)
            while rest and rest[0] != "\n":
                text, comma, after = rest.partition(",")
                rest = after if comma else None
                tid = self._parse_tid(strip(text))
                try:
                    self._move(group, tid)
                except OSError:
                    self.status.say(f"Error while processing task {tid}")
                    raise

        return store_list if self.kernel.task_lists else store_one

    def _parse_tid(self, text: str) -> int:
        try:
            tid = signed(text, 0)
        except OSError:
            self.status.say(f"Task list parsing error pid {text}")
            raise refusal(errno.EINVAL) from None
        if tid < 0:
            self.status.say(f"Invalid pid {tid}")
            raise refusal(errno.EINVAL)
        return tid

    def _move(self, group: Group, tid: int) -> None:
        caller = self.caller()
        try:
            thread = self.groups.processes.thread(tid) if tid else caller
        except OSError:
            self.status.say(f"No task {tid}")
            raise
        if caller.uid not in (0, thread.uid):
            self.status.say(f"No permission to move task {thread.tid}")
            raise refusal(errno.EPERM)
        self.groups.admit(group, thread)


def _need_newline(data: bytes) -> None:
    """Refuse what does not end in one, before the last command's status is cleared."""
    if not data.endswith(b"\n"):
        raise refusal(errno.EINVAL)
