"""Processors by what perf lists for them (tests/data/perf_events): a perf that answers as perf does there."""

from dataclasses import dataclass, field
from pathlib import Path

from castmates.linux.event_names import TABLE
from castmates.linux.perf_event import HARDWARE, HW_CACHE

LISTS = Path(__file__).resolve().parents[2] / "data" / "perf_events"
NAMES = sorted(file.stem for file in LISTS.glob("*.txt") if file.stem != "kernel")
RULE = "------------------------------------------------------------\n"
UNIT = {"cpu_core": 4, "cpu_atom": 10, "armv8_pmuv3_0": 8, "": 4}  # the numbers that the kernel gives, for example


@dataclass
class Processor:
    """What perf lists, and answers, on a processor."""

    events: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # name -> unit, encoding
    metrics: dict[str, str] = field(default_factory=dict)  # name -> groups
    vendor: str = ""
    asked: list[str] = field(default_factory=list)

    @property
    def hybrid(self):
        return any(unit for units in self.events.values() for unit, _ in units if unit.startswith("cpu_"))

    @property
    def lacks(self):
        """The kernel's names of which a processor of this vendor has none."""
        lines = (line.split() for line in (LISTS / "kernel.txt").read_text().splitlines())
        return next(set(names) for vendor, *names in lines if vendor == self.vendor)

    def encoded(self, name):
        """Whether the encoding of an event is recorded."""
        return all(encoding for _, encoding in self.events[name])

    def listed(self):
        """As `perf list --raw-dump` prints them."""
        words = [f"{unit}/{name}/" if unit.startswith("cpu_") else name
                 for name, units in self.events.items() for unit, _ in units]  # fmt: skip
        return " ".join([*TABLE, "rNNN", "cpu/t1=v1[,t2=v2,t3", *words])

    def ask(self, words):
        """As `perf stat -vv -e …` prints its requests; an event that it does not know ends it."""
        self.asked.append(list(words))
        printed = ""
        for word in words:
            attrs = self._attrs(word)
            if not attrs:
                return f"event syntax error: '{word}'\n                     \\___ Bad event name\n"
            printed += "".join(
                f"{RULE}perf_event_attr:\n  type                             {kind}\n"
                f"  config                           {config:#x}\n"
                f"  read_format                      TOTAL_TIME_ENABLED|TOTAL_TIME_RUNNING\n{RULE}"
                for kind, config in attrs
            )
        return printed

    def _attrs(self, word):
        if word == "dummy:u":
            return [(1, 9)]
        if word in TABLE:
            kind, config, *_ = TABLE[word]
            of_units = (UNIT["cpu_core"], UNIT["cpu_atom"]) if self.hybrid and kind in (HARDWARE, HW_CACHE) else (0,)
            return [(kind, unit << 32 | config) for unit in of_units]
        arm = "armv8_pmuv3_0" if self.vendor == "arm" else ""
        return [(UNIT[unit or arm], config_of(terms)) for unit, terms in self.events.get(word, [])]


def config_of(terms):
    """`event=0xa3,cmask=5,umask=0x5` -> 0x50005a3; of a name without an encoding any number."""
    values = dict(term.split("=") for term in terms.split(",")) if terms else {"event": "0x1"}
    event, umask, cmask = (int(values.get(name, "0"), 0) for name in ("event", "umask", "cmask"))
    return event & 0xFFFF if event > 0xFFF else event & 0xFF | umask << 8 | cmask << 24 | (event >> 8) << 32


def processor(name):
    """Read one of the lists."""
    found = Processor(vendor="amd" if name.startswith("zen") else "arm" if name.startswith("neo") else "intel")
    for line in (LISTS / f"{name}.txt").read_text().splitlines()[1:]:
        words = line.split()
        if words[0] == "metric":
            found.metrics[words[1].rpartition("/")[2]] = words[2]
        else:
            unit, _, event = words[0].rpartition("/")
            found.events.setdefault(event, []).append((unit, words[1] if len(words) > 1 else ""))
    return found
