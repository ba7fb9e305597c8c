"""What a compiler made of a C file, read from its assembler text: functions, their loops, and what instructions do."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

VECTOR_BITS = {"x": 128, "y": 256, "z": 512}
ARM_CONDITIONS = "(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|any|none|last|nlast|first|nfrst)"
NO_VALUE = (
    "cmp",
    "test",
    "bt",
    "ucomi",
    "comi",
    "vucomi",
    "vcomi",
    "push",
    "mul",
    "imul",
    "prefetch",
    "nop",
)  # they write no operand


@dataclass(frozen=True)
class Instruction:
    """One line of the text, with what it does as far as its name and operands show it in the processor's manual."""

    name: str
    operands: str
    arm: bool

    def __str__(self) -> str:
        return f"{self.name} {self.operands}".strip()

    @property
    def jumps_to(self) -> str | None:
        """The label that may be gone to, where there is one."""
        jump = rf"b|b\.?{ARM_CONDITIONS}|cbn?z|tbn?z" if self.arm else r"j\w+"
        return self.operands.split(",")[-1].strip() if re.fullmatch(jump, self.name) else None

    @property
    def is_conditional_jump(self) -> bool:
        return self.jumps_to is not None and self.name not in ("b", "jmp")

    @property
    def ends_a_launch(self) -> bool:
        return self.jumps_to is not None or self.name in ("ret", "retq", "br")

    @property
    def calls(self) -> str | None:
        return self.operands.split("@")[0] if self.name in ("call", "callq", "bl") else None

    @property
    def chooses(self) -> bool:
        """Whether it makes a value of a condition, without a jump."""
        return bool(
            re.match(r"cs(el|et|etm|inc|inv|neg)|cinc|cinv|cneg" if self.arm else r"cmov|set|sbb|adc", self.name)
        )

    @property
    def reads(self) -> bool:
        if self.arm:
            return self.name.startswith("ld")
        if not self._has_place or self.name.startswith(("lea", "prefetch", "nop")):
            return False
        return not (self._writes_last and re.match(r"v?mov|vextract", self.name))

    @property
    def writes(self) -> bool:
        return self.name.startswith("st") if self.arm else self._writes_last

    @property
    def past_caches(self) -> bool:
        return "movnt" in self.name

    @property
    def locked(self) -> bool:
        return self.name.startswith(("lock", "ldadd", "ldaxr", "ldxr"))

    @property
    def gathers(self) -> bool:
        return "gather" in self.name or "scatter" in self.name

    @property
    def vector_bits(self) -> int:
        """The width of its widest vector register; 0 where it has none, scalar floating point aside."""
        if self.arm:
            return 128 if re.search(r"\b(?:v\d+\.|z\d+\.|q\d+)", self.operands) else 0
        return max((VECTOR_BITS[kind] for kind in re.findall(r"%([xyz])mm\d", self.operands)), default=0)

    @property
    def has_vector_register(self) -> bool:
        """Whether it works with the registers of vectors, be it with one lane of them."""
        return bool(re.search(r"\b(?:[vz]\d+\.|[qdshb]\d+\b)" if self.arm else r"%[xyz]mm\d", self.operands))

    @property
    def arithmetic(self) -> str:
        """'fused', 'mul' or 'add' of floating point, with 'packed ' before it for whole vectors; or nothing."""
        if self.arm:
            found = re.match(r"f(?P<fused>mla|madd|nmadd|mls|msub)|f(?P<mul>mul)|f(?P<add>add|sub)", self.name)
            packed = self.vector_bits > 0
        else:
            found = re.fullmatch(
                r"v?(?:(?P<fused>fn?m(?:add|sub)\d+)|(?P<mul>mul)|(?P<add>add|sub))(?:pd|sd)", self.name
            )
            packed = self.name.endswith("pd")
        return f"{'packed ' * packed}{found.lastgroup}" if found and found.lastgroup else ""

    @property
    def multiplies_integers(self) -> bool:
        return bool(re.match(r"mul$|madd|umulh" if self.arm else r"i?mul[qx]?$", self.name))

    @property
    def _has_place(self) -> bool:
        return "(" in self.operands

    @property
    def _writes_last(self) -> bool:
        return self.operands.endswith(")") and not self.name.startswith(NO_VALUE) and self.jumps_to is None


@dataclass(frozen=True)
class Launch:
    """What is done one after the other, from a label or a jump to the next: our own remarks ('way: …') among it."""

    lines: tuple[str | Instruction, ...]
    follows: frozenset[int]  # the launches that may come next

    @property
    def instructions(self) -> list[Instruction]:
        return [line for line in self.lines if isinstance(line, Instruction)]


@dataclass(frozen=True)
class Function:
    """A function's launches, and the loops among them wherever a compiler has put their parts."""

    name: str
    launches: tuple[Launch, ...]

    @property
    def instructions(self) -> list[Instruction]:
        return [one for launch in self.launches for one in launch.instructions]

    @cached_property
    def bodies(self) -> list[frozenset[int]]:
        """The launches of each loop: those from which its head is reached again, itself among them."""
        bodies: dict[int, set[int]] = {}
        for end, launch in enumerate(self.launches):
            for head in launch.follows & self._dominators[end]:
                body, ahead = bodies.setdefault(head, {head}), [end]
                while ahead:
                    if (one := ahead.pop()) not in body:
                        body.add(one)
                        ahead += [before for before, other in enumerate(self.launches) if one in other.follows]
        return [frozenset(body) for body in bodies.values()]

    @property
    def loops(self) -> list[list[Instruction]]:
        return [self._of(body) for body in self.bodies]

    @property
    def inner_loops(self) -> list[list[Instruction]]:
        """Those loops that have no other within them."""
        return [self._of(body) for body in self.bodies if not any(other < body for other in self.bodies)]

    def loops_with(self, remark: str) -> list[list[Instruction]]:
        """The smallest loops that have a remark within them."""
        having = [body for body in self.bodies if any(remark in self.launches[one].lines for one in body)]
        return [self._of(body) for body in having if not any(other < body for other in having)]

    def ways(self, remark: str) -> list[list[Instruction]]:
        """The launches with a remark to which a conditional jump may lead, or not."""
        found = []
        for number, launch in enumerate(self.launches):
            before = [one for one in self.launches if number in one.follows]
            if remark in launch.lines and any(len(one.follows) > 1 for one in before):
                found.append(launch.instructions)
        return found

    def _of(self, body: frozenset[int]) -> list[Instruction]:
        return [one for number in sorted(body) for one in self.launches[number].instructions]

    @cached_property
    def _dominators(self) -> list[frozenset[int]]:
        """For each launch those that must have been passed before, and itself."""
        count = len(self.launches)
        before = [{one for one in range(count) if number in self.launches[one].follows} for number in range(count)]
        found = [frozenset(range(count))] * count
        changed = True
        while changed:
            changed = False
            for number in range(count):
                common = (
                    frozenset.intersection(*(found[one] for one in before[number])) if before[number] else frozenset()
                )
                now = (common if number else frozenset()) | {number}
                changed, found[number] = changed or now != found[number], now
        return found


def _launches(lines: Sequence[str | Instruction]) -> tuple[Launch, ...]:
    """Cut lines at labels and after jumps."""
    parts: list[list[str | Instruction]] = [[]]
    labels: dict[str, int] = {}
    for line in lines:
        is_label = isinstance(line, str) and line.endswith(":")
        if parts[-1] and (is_label or (isinstance(parts[-1][-1], Instruction) and parts[-1][-1].ends_a_launch)):
            parts.append([])
        if is_label:
            labels[str(line)[:-1]] = len(parts) - 1
        else:
            parts[-1].append(line)
    return tuple(Launch(tuple(part), _follows(number, part, labels, len(parts))) for number, part in enumerate(parts))


def _follows(number: int, part: list[str | Instruction], labels: dict[str, int], count: int) -> frozenset[int]:
    last = part[-1] if part else None
    found = set()
    if not isinstance(last, Instruction) or not last.ends_a_launch or last.is_conditional_jump:
        found.add(number + 1)
    if isinstance(last, Instruction) and last.jumps_to in labels:
        found.add(labels[last.jumps_to])
    return frozenset(found & set(range(count)))


def functions(text: str, arm: bool) -> dict[str, Function]:
    """The functions of an assembler text; what a compiler appends to a name (.constprop.0) is left out."""
    found: dict[str, Function] = {}
    name, lines = "", list[str | Instruction]()
    for raw in text.splitlines():
        if begun := re.match(r"([A-Za-z_][\w.]*):", raw):
            name, lines = begun[1], []
        elif re.match(r"\s*\.size\s", raw) and name:
            plain = name.split(".")[0]
            if plain not in found or not name.endswith(".cold"):
                found[plain] = Function(plain, _launches(lines))
            name = ""
        elif name:
            lines += _read(raw, arm)
    return found


def _read(raw: str, arm: bool) -> Iterator[str | Instruction]:
    if remark := re.search(r"(?:/\*|//|#)\s*(way: [\w ]*\w)", raw):  # compilers write comments anew
        yield remark[1]
        return
    for code in raw.split("//" if arm else "#")[0].split(";"):
        if label := re.match(r"(\.?\w+):", code):
            yield f"{label[1]}:"
        elif (words := code.split(None, 1)) and not words[0].startswith((".", "#")):
            name, operands = words[0], words[1].strip() if len(words) > 1 else ""
            if name == "lock" and operands:
                name, operands = f"lock {operands.split()[0]}", operands.split(None, 1)[1]
            yield Instruction(name, re.sub(r"\s+", " ", operands), arm)
