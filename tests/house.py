"""The house as its imports draw it: rooms, arrows and floors. `python -m tests.house` draws the picture.

A room is a folder of castmates/; arrows are also known between the folders of those named in PARTED. Imports inside
functions count; those that only a type checker sees do not.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "castmates"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- the house: drawn by `python -m tests.house` -->\n", "<!-- end of the house -->\n"
PARTED = ("report", "results")
BASE = (
    "english",
    "errors",
    "extras",
    "files",
    "protocols",
    "sampler",
    "parallel",
    "plugins",
    "shipped",
    "__version__",
)  # what every room may use


@cache
def modules() -> dict[str, Path]:
    """Every module of ours by its dotted name."""
    return {_dotted(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def _dotted(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports() -> dict[str, frozenset[str]]:
    """The modules of ours that each module imports, at the top and inside its functions."""
    return {name: frozenset(imported_by(file)) - {name} for name, file in modules().items()}


def imported_by(file: Path) -> Iterator[str]:
    """The modules of ours that one file imports."""
    for node in running(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules():
                    yield inner
                elif node.module in modules():
                    yield node.module


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module, but for those that only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from running(node)


def room_of(module: str, parted: bool = True) -> str:
    """The room of a module: its folder below castmates/, or its own name where it lies flat."""
    parts = module.split(".")[1:]
    if not parts:
        return "castmates"
    if parted and parts[0] in PARTED and len(parts) > 1 and (PACKAGE / parts[0] / parts[1]).is_dir():
        return f"{parts[0]}/{parts[1]}"
    return parts[0]


@cache
def arrows(parted: bool = True) -> dict[str, frozenset[str]]:
    """Which rooms each room uses; what every room may use is left out."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, targets in imports().items():
        room = room_of(module, parted)
        found[room] |= {room_of(target, parted) for target in targets}
    hidden = {*BASE, "castmates", "__main__"}
    return {room: frozenset(used - hidden - {room}) for room, used in sorted(found.items()) if room not in hidden}


def floors() -> list[list[str]]:
    """The rooms from the ground up: each uses only rooms below it; CycleError for a circle."""
    sorter = TopologicalSorter(arrows(parted=False))
    sorter.prepare()
    layers = []
    while sorter.is_active():
        layers.append(sorted(ready := sorter.get_ready()))
        sorter.done(*ready)
    return layers


def picture() -> str:
    """The floors from the top down, each room with the rooms it uses that no other room it uses leads to."""
    width = max(map(len, arrows(parted=False)))
    lines = []
    for number, rooms in reversed(list(enumerate(floors()))):
        for place, room in enumerate(rooms):
            floor = f"{number:>2}" if place == 0 else "  "
            lines.append(f"{floor}  {room:<{width}}  {', '.join(_next(room)) or '·'}")
    return "```\n" + "\n".join(lines) + "\n```\n"


def _next(room: str) -> list[str]:
    used = arrows(parted=False)[room]
    behind = set().union(*(_reached(other) for other in used)) if used else set()
    return sorted(used - behind)


@cache
def _reached(room: str) -> frozenset[str]:
    used = arrows(parted=False)[room]
    return used.union(*(_reached(other) for other in used))


def circles() -> list[list[str]]:
    """Groups of modules that import each other in a circle (Tarjan's components)."""
    graph, index, low, stack, components = imports(), {}, {}, [], []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            component = [stack.pop()]
            while component[-1] != module:
                component.append(stack.pop())
            if len(component) > 1:
                components.append(sorted(component))

    for module in graph:
        if module not in index:
            visit(module)
    return components


def page_with(drawn: str) -> str:
    """The page docs/architecture.md with this picture in its place."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + drawn + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page_with(picture()), encoding="utf-8")
