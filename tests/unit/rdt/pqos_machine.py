"""Answers like pqos for an invented machine: what it prints is in the form that was recorded, what it takes is kept."""

from castmates.errors import CastmatesError
from castmates.machine.pqos_tool import State, parse_state
from castmates.machine.topology import parse_cpu_list


class Tool:
    """Two sockets of four CPUs, 12 ways, 16 classes of them and 8 throttles, unless given otherwise."""

    interface = "msr"

    def __init__(self, classes=16, sockets=2, rounds_to=10):
        self.masks = {(socket, number): 0xFFF for socket in range(sockets) for number in range(classes)}
        self.throttles = {(socket, number): 100 for socket in range(sockets) for number in range(min(8, classes))}
        self.cores = dict.fromkeys(range(4 * sockets), 0)
        self.step, self.calls, self.ignores = rounds_to, [], set()

    def call(self, *words):
        self.calls.append(words)
        option, *rest = words
        if option == "-s":
            return self._show()
        if option == "-D":
            return "L3 CAT\n CDP: disabled\n Max CBM bits: 12\n Way size: 1048576 bytes\n LLC Occupancy (LLC)\n"
        if option == "--version":
            return "PQoS Tool version: 4.5.0\nPQoS Library version: 4.5.0\n"
        for word in rest[0].split(";"):
            self._take(option, word)
        return "Allocation configuration altered.\n"

    @property
    def state(self) -> State:
        return parse_state(self._show())

    def _take(self, option, word):
        what, _, value = word.partition("=")
        kind, _, number = what.partition(":")
        if option == "-a":
            self.cores |= dict.fromkeys(parse_cpu_list(value), int(number))
            return
        kind, _, socket = kind.partition("@")
        key = int(socket), int(number)
        if kind == "llc" and key not in self.ignores:
            if not int(value, 16) or int(value, 16) & ~0xFFF:
                raise CastmatesError("Invalid file arguments")
            self.masks[key] = int(value, 16)
        elif kind == "mba":
            self.throttles[key] = -(-int(value) // self.step) * self.step

    def _show(self):
        lines = []
        for socket in sorted({socket for socket, _ in self.masks}):
            lines.append(f"L3CA/MBA COS definitions for Socket {socket}:")
            lines += [f"    L3CA COS{n} => MASK {mask:#x}" for (at, n), mask in self.masks.items() if at == socket]
            lines += [f"    MBA COS{n} => {v}% available" for (at, n), v in self.throttles.items() if at == socket]
        for cpu, number in self.cores.items():
            if cpu % 4 == 0:
                lines.append(f"Core information for socket {cpu // 4}:")
            lines.append(f"    Core {cpu}, L2ID {cpu}, L3ID {cpu // 4} => COS{number}, RMID0")
        return "\n".join(lines) + "\n"
