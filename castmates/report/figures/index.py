"""The figures, in the order of the page: each is a module of its name in this folder, which declares it.

The workflow asks for them before anything is measured, so a figure's module is imported only when it is drawn.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, cast, get_args

from castmates import plugins
from castmates.results.folder import StudyFolder
from castmates.results.tables import has
from castmates.study import capabilities
from castmates.study.capabilities import Capability

if TYPE_CHECKING:  # drawing takes pandas and matplotlib, the list of what is drawn does not
    import pandas as pd
    from matplotlib import figure

    from castmates.report.results import Results
    from castmates.study.spec import Plan

Part = Literal[
    "losses", "recommendation", "why", "health", "prediction", "operations", "traces"
]  # of the page; castmates/report/page/page.py


class Drawing(Protocol):
    """What a figure's module has."""

    def draw(self, results: "Results", /) -> "tuple[figure.Figure, pd.DataFrame]":
        """The figure and its source data."""

    def lacking(self, results: "Results", /) -> str:
        """Why there is nothing to show, in a sentence; "" where there is something."""

    def caption(self, results: "Results", /) -> str:
        """What stands below it, without the platform before and the source behind: what is what, and how many."""

    def alternative(self, results: "Results", /) -> str:
        """What is read aloud in its place, without the platform before."""

    # A module may also have `in_short`: the line in whose fold the figure stands where it shows little; else "".


class View(NamedTuple):
    """What a figure's module declares, as the constant `FIGURE`: where it is on the page, and which studies have it."""

    title: str
    part: Part
    place: int = 0  # among ours; those of plug-ins follow
    needs: Capability | None = None  # a study without it has no such figure
    drawn_by: str = ""  # the module that draws and describes it; left out where that is the one that declares it
    name: str = ""  # filled in: that of the module, of the plug-in
    about: str = ""  # filled in: what it shows, from the module's docstring

    @property
    def module(self) -> Drawing:
        """What draws and describes it."""
        return cast(Drawing, import_module(self.drawn_by))


def declared(file: Path) -> View | None:
    """What a module declares, read and not imported: it imports what drawing takes."""
    head = file.read_text(encoding="utf-8").partition("\n\n\n")[0]  # before the first function
    module = ast.parse(head if "\nFIGURE = {" in head else "")
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name("FIGURE")], value=literal):
                given, about = ast.literal_eval(literal), (ast.get_docstring(module) or "").partition(": ")[2]
                given["needs"] = getattr(capabilities, given["needs"]) if "needs" in given else None
                return View(**given, name=file.stem, drawn_by=f"{__package__}.{file.stem}", about=about)
    return None


def _collected() -> dict[str, View]:
    found = filter(None, map(declared, Path(__file__).parent.glob("*.py")))
    return {view.name: view for view in sorted(found, key=lambda view: (view.place, view.name))}


FIGURES = _collected()


def figures_of(plan: "Plan", folder: StudyFolder) -> list[str]:
    """The figures that a study has, in the order of the page: known before anything is measured."""
    return [name for name, view in all_figures().items() if has(view.needs, plan, folder)]


@cache
def all_figures() -> dict[str, View]:
    """Ours, and after them those of plug-ins, by name."""
    added = plugins.added("figures", _wrong, taken=FIGURES)
    return FIGURES | {name: view._replace(name=name) for name, view in added.items()}


def _wrong(thing: object) -> str:
    """Why this is no figure of a plug-in; "" where it is one."""
    if not isinstance(thing, View):
        return f"it is a {type(thing).__name__}, and no castmates.report.figures.index.View"
    if thing.part not in get_args(Part):
        return f"its part is '{thing.part}' ({', '.join(get_args(Part))})"
    return "" if thing.drawn_by else "it has no drawn_by, the name of the module that draws it"
