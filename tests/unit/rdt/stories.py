"""Random things to do to resctrl, mostly what a machine may take: for properties, and to compare with real kernels."""

from random import Random

from castmates.rdt.fake import FakeResctrl, Shape
from castmates.rdt.fake.kernel import show_cpu_list

CONTROLS = ["", "a", "b", "c"]
GROUPS = [*CONTROLS, "mon_groups/x", "a/mon_groups/x", "a/mon_groups/y", "b/mon_groups/x", "c/mon_groups/z"]
VERBS = {
    "make": 3,
    "remove": 1,
    "schemata": 8,
    "split": 1,
    "mode": 3,
    "tasks": 3,
    "cpus": 1,
    "cpus_list": 2,
    "rename": 2,
    "fork": 1,
    "exit": 1,
    "advance": 1,
}
ODD_VALUES = [
    "0xff",
    " f ",
    "",
    "g",
    "-1",
    "+20",
    "f\r",
    "55",
    "0",
    "fffff",
    "1f0f",
    "7",
    "00f",
    "0x",
    "1 2",
    "99999999999",
]
ODD_LINES = ["", "L3", ":", "L3:", "L3=0", ":0=f", "L2:0=f", " MB", "L3DATA:0=3", "L3CODE:0=c", "L3:0", "MB:0", "#"]
ODD_NUMBERS = [
    "",
    " ",
    "x",
    "-1",
    "0",
    "99999",
    "1,1",
    "2-1",
    "0-9",
    "0x1",
    "3,x",
    "N",
    "all",
    "1 2",
    "0-3:1/2",
    "ff",
    "1f",
    "\n",
]
ODD_MODES = ["shareable", "EXCLUSIVE\n", "pseudo-locked\n", "pseudo-locksetup\n", "", "\n", "exclusive \n"]

Step = tuple[str, ...]


class Story:
    """A source of steps; each is a verb and texts."""

    def __init__(self, seed: int, shape: Shape, option: str = "") -> None:
        self.random, self.shape = Random(seed), shape
        caches = ["L3DATA", "L3CODE"] if option == "cdp" else ["L3"] if shape.ways else []
        self.resources = [*caches * 3, *(["MB"] if shape.throttle else [])] or ["L3"]
        self.odds = 0.1  # of something odd in each place
        self._next: list[Step] = []

    def step(self) -> Step:
        """Return the next thing to do."""
        if self._next:
            return self._next.pop(0)
        verb = self.random.choices(list(VERBS), VERBS.values())[0]
        if verb == "split":
            self._next = self.split()
            return self._next.pop(0)
        match verb:
            case "schemata":
                return verb, self.control(), self.schemata()
            case "mode":
                usual = ["shareable\n", "exclusive\n", "exclusive\n"]
                return verb, self.control(), self.random.choice(usual if self.usual() else ODD_MODES)
            case "tasks":
                numbers = [str(self.random.randint(1, 6)) for _ in range(self.random.choice([1, 1, 1, 2, 3]))]
                return verb, self.group(), ",".join(numbers) + "\n" if self.usual() else self.random.choice(ODD_NUMBERS)
            case "cpus" | "cpus_list":
                return verb, self.group(), self.cpus(verb)
            case "rename":
                return verb, *self.random.sample(GROUPS, 2)
            case "fork" | "exit":
                return verb, str(self.random.randint(3, 6))
            case "advance":
                return verb, str(self.random.choice([0.25, 0.5, 1, 3]))
        return verb, self.group()

    def split(self) -> list[Step]:
        """Return how a group gets separate ways: all others get the other half, without the ways that I/O uses."""
        own = [way for way in range(self.shape.ways) if not self.shape.shareable >> way & 1]
        low, high = own[: len(own) // 2], own[len(own) // 2 :]
        one = self.random.choice(CONTROLS)
        texts = {group: self.everywhere(low if group == one else high) for group in CONTROLS}
        return [*(("schemata", group, text) for group, text in texts.items()), ("mode", one, "exclusive\n")]

    def everywhere(self, ways: list[int]) -> str:
        entries = ";".join(f"{domain}={sum(1 << way for way in ways):x}" for domain in sorted(self.shape.domains))
        return "".join(f"{name}:{entries}\n" for name in sorted({*self.resources} - {"MB"}))

    def usual(self) -> bool:
        return self.random.random() > self.odds

    def group(self) -> str:
        return self.random.choice(GROUPS)

    def control(self) -> str:
        return self.random.choice(CONTROLS if self.usual() else [*GROUPS, "nobody", "info", "info/L3"])

    def schemata(self) -> str:
        text = "\n".join(self.line() for _ in range(self.random.choice([1, 1, 1, 2, 2, 3])))
        return text + ("\n" if self.random.random() < 0.98 else "")

    def line(self) -> str:
        if not self.usual():
            return self.random.choice(ODD_LINES)
        resource = self.random.choice(self.resources)
        domains = sorted(self.shape.domains)
        chosen = self.random.sample(domains, self.random.randint(1, min(4, len(domains))))
        if not self.usual():
            chosen.append(self.random.choice([*domains, 2, 99]))
        separator = ";" if self.usual() else self.random.choice([";;", "; ", ","])
        return f"{resource}:" + separator.join(f"{domain}={self.value(resource)}" for domain in chosen)

    def value(self, resource: str) -> str:
        if not self.usual():
            return self.random.choice(ODD_VALUES)
        if resource == "MB":
            assert self.shape.throttle is not None
            return str(self.random.randint(self.shape.throttle.least, self.shape.throttle.most))
        return f"{self.mask():x}"

    def mask(self) -> int:
        width = self.random.randint(min(max(1, self.shape.least_bits), self.shape.ways), max(1, self.shape.ways))
        width = min(width, self.random.choice([2, 4, width]))
        holes = self.random.getrandbits(width) if self.shape.sparse and self.random.random() < 0.3 else 0
        return ((1 << width) - 1 & ~holes) << self.random.randint(0, max(0, self.shape.ways - width))

    def cpus(self, file: str) -> str:
        if not self.usual():
            return self.random.choice(ODD_NUMBERS)
        every = sorted(self.shape.cpus)
        chosen = self.random.sample(every, self.random.randint(0, min(3, len(every))))
        return (show_cpu_list(chosen) if file == "cpus_list" else f"{sum(1 << cpu for cpu in chosen):x}") + "\n"


def below(group: str, file: str) -> str:
    """Return the path of a file of a group."""
    return f"{group}/{file}".lstrip("/")


def take(fake: FakeResctrl, step: Step) -> None:
    """Do it to the fake."""
    verb, *texts = step
    match verb:
        case "make" | "remove" | "rename":
            getattr(fake, verb)(*texts)
        case "advance":
            fake.advance(float(texts[0]))
        case "fork":
            fake.processes.fork(int(texts[0]))
        case "exit":
            fake.processes.exit(int(texts[0]))
        case file:
            fake.write(below(texts[0], file), texts[1])
