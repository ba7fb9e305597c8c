"""The figures: a row each, in the order of the page. A figure is the module of its name in this folder.

The workflow reads these rows before anything is measured, so a figure's module is imported only when it is asked for.
"""

from functools import cache
from importlib import import_module
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
]  # of the page; castmates/report/page/contents.py


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


class Figure(NamedTuple):
    """A figure, and where it stands."""

    name: str
    title: str
    part: Part
    needs: Capability | None = None  # a study without it has no such figure
    drawn_by: str = ""  # a plug-in's module; the one of its name in this folder if left out

    @property
    def module(self) -> Drawing:
        """What draws and describes it."""
        return cast(Drawing, import_module(self.drawn_by or f"castmates.report.figures.{self.name}"))


FIGURES = {
    row.name: row
    for row in (
        Figure("mitigations", "What helps, and what it costs", "losses", capabilities.MITIGATIONS),
        Figure("distances", "Number and nearness of neighbours", "losses", capabilities.DISTANCES),
        Figure("variants", "Leads in other settings", "losses", capabilities.VARIANTS),
        Figure("heatmap", "Loss of each pair", "losses"),
        Figure("system_mixes", "Combined throughput of many mixes", "losses", capabilities.SETS),
        Figure("steptimes", "How long steps take", "losses"),
        Figure("services", "How long requests take", "losses", capabilities.SERVICES),
        Figure("predicted_losses", "The whole grid, measured and predicted", "prediction", capabilities.PREDICTION),
        Figure("prediction_errors", "Predicted against measured", "prediction", capabilities.PREDICTION),
        Figure("operations", "Which operations lose", "operations", capabilities.PROFILE),
        Figure("waterfall", "Where the loss of a step comes from", "operations", capabilities.PROFILE),
        Figure("critical_path", "A step along its schedule's path", "operations", capabilities.PROFILE),
        Figure(
            "path_waterfall", "Where a step gets longer along its schedule's path", "operations", capabilities.PROFILE
        ),
        Figure("roofline", "What operations reach of what is attainable", "operations", capabilities.PRIMITIVES),
        Figure("partitions", "Under partitions", "recommendation", capabilities.PARTITIONS),
        Figure("heatmap_partitions", "Each partition", "recommendation", capabilities.PARTITIONS),
        Figure("sensitivity", "Sensitivity to its ways", "recommendation", capabilities.PARTITIONS),
        Figure("pareto", "What a share costs the others", "recommendation", capabilities.PARTITIONS),
        Figure("attribution", "What each loss consists of", "why"),
        # Those that explain never decide.
        Figure("topdown", "Top-Down", "why", capabilities.TOPDOWN),
        Figure("timeline", "Occupancy and bandwidth over time", "why", capabilities.MONITOR),
        Figure("counters", "Counters", "why", capabilities.EVENTS),
        Figure("counters_evolution", "Counters over the rounds", "why", capabilities.EVENTS),
        Figure("phases", "Phases of a step", "why", capabilities.PHASES),
        Figure("phase_counts", "Counters by phase", "why", capabilities.PHASES),
        Figure("topdown_phases", "Top-Down by phase", "why", capabilities.TOPDOWN_PHASES),
        Figure("layers", "Layers, profiled", "why", capabilities.LAYERS),
        Figure("evolution", "Step by step", "why", capabilities.PROGRAMS),
        Figure("scheduler", "What threads did", "traces", capabilities.TRACES),
        Figure("health", "Health", "health"),
        Figure("control", "Controls", "health"),
        Figure("windows", "The study over time", "health"),
    )
}


def figures_of(plan: "Plan", folder: StudyFolder) -> list[str]:
    """The figures that a study has, in the order of the page: known before anything is measured."""
    return [name for name, row in all_figures().items() if has(row.needs, plan, folder)]


@cache
def all_figures() -> dict[str, Figure]:
    """Ours, and after them those of plug-ins, by name."""
    return FIGURES | plugins.added("figures", _wrong, taken=FIGURES)


def _wrong(thing: object) -> str:
    """Why this is no figure of a plug-in; "" where it is one."""
    if not isinstance(thing, Figure):
        return f"it is a {type(thing).__name__}, and no castmates.report.figures.index.Figure"
    if thing.part not in get_args(Part):
        return f"its part is '{thing.part}' ({', '.join(get_args(Part))})"
    return "" if thing.drawn_by else "it has no drawn_by, the name of the module that draws it"
