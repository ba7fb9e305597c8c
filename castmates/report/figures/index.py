"""The figures: a row each, in the order of the page. A figure is the module of its name in this folder.

The workflow reads these rows before anything is measured, so a figure's module is imported only when it is asked for.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, cast, get_args

from castmates import plugins
from castmates.results.folder import StudyFolder
from castmates.results.traces import traces_there
from castmates.study.class_caches import is_watched
from castmates.study.model import Study
from castmates.study.services import service_workloads

if TYPE_CHECKING:  # drawing takes pandas and matplotlib, the list of what is drawn does not
    import pandas as pd
    from matplotlib import figure

    from castmates.report.results import Results
    from castmates.study.spec import Plan

Part = Literal[
    "losses", "recommendation", "why", "health", "prediction", "operations", "traces"
]  # of the page; castmates/report/page/contents.py
Need = Literal[
    "",
    "mitigations",
    "distances",
    "partitions",
    "monitor",
    "events",
    "topdown",
    "profile",
    "phases",
    "topdown of phases",
    "programs",
    "sets",
    "services",
    "prediction",
    "traces",
    "variants",
    "primitives",
    "recorded",
]


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
    needs: Need = ""  # a study without it has no such figure
    drawn_by: str = ""  # a plug-in's module; the one of its name in this folder if left out

    @property
    def module(self) -> Drawing:
        """What draws and describes it."""
        return cast(Drawing, import_module(self.drawn_by or f"castmates.report.figures.{self.name}"))


FIGURES = {
    row.name: row
    for row in (
        Figure("mitigations", "What helps, and what it costs", "losses", needs="mitigations"),
        Figure("distances", "Number and nearness of neighbours", "losses", needs="distances"),
        Figure("variants", "Leads in other settings", "losses", needs="variants"),
        Figure("heatmap", "Loss of each pair", "losses"),
        Figure("system_mixes", "Combined throughput of many mixes", "losses", needs="sets"),
        Figure("steptimes", "How long steps take", "losses"),
        Figure("services", "How long requests take", "losses", needs="services"),
        Figure("predicted_losses", "The whole grid, measured and predicted", "prediction", needs="prediction"),
        Figure("prediction_errors", "Predicted against measured", "prediction", needs="prediction"),
        Figure("operations", "Which operations lose", "operations", needs="traces"),
        Figure("waterfall", "Where the loss of a step comes from", "operations", needs="traces"),
        Figure("critical_path", "A step along its schedule's path", "operations", needs="traces"),
        Figure("path_waterfall", "Where a step gets longer along its schedule's path", "operations", needs="traces"),
        Figure("roofline", "What operations reach of what is attainable", "operations", needs="primitives"),
        Figure("partitions", "Under partitions", "recommendation", needs="partitions"),
        Figure("heatmap_partitions", "Each partition", "recommendation", needs="partitions"),
        Figure("sensitivity", "Sensitivity to its ways", "recommendation", needs="partitions"),
        Figure("pareto", "What a share costs the others", "recommendation", needs="partitions"),
        Figure("attribution", "What each loss consists of", "why"),
        # Those that explain never decide.
        Figure("topdown", "Top-Down", "why", needs="topdown"),
        Figure("timeline", "Occupancy and bandwidth over time", "why", needs="monitor"),
        Figure("counters", "Counters", "why", needs="events"),
        Figure("counters_evolution", "Counters over the rounds", "why", needs="events"),
        Figure("phases", "Phases of a step", "why", needs="phases"),
        Figure("phase_counts", "Counters by phase", "why", needs="phases"),
        Figure("topdown_phases", "Top-Down by phase", "why", needs="topdown of phases"),
        Figure("layers", "Layers, profiled", "why", needs="profile"),
        Figure("evolution", "Step by step", "why", needs="programs"),
        Figure("scheduler", "What threads did", "traces", needs="recorded"),
        Figure("health", "Health", "health"),
        Figure("control", "Controls", "health"),
        Figure("windows", "The study over time", "health"),
    )
}


def figure_names(
    study: Study | None,
    partitioned: bool,
    phases: bool = False,
    watched: bool = False,
    services: bool = False,
    recorded: bool = False,
) -> list[str]:
    """The figures that a study has, in the order of the page: known before anything is measured.

    Those that a study asks for are left out where the study is not known. `phases`: a lead reports those of its steps;
    `watched`: the machine can read what its caches hold; `services`: a lead is an open-loop service;
    `recorded`: it has traces, or will.
    """
    programs = study if study is not None and study.platform != "modelled" else None
    there: dict[Need, bool] = {
        "": True,
        "mitigations": study is not None and bool(study.mitigations),
        "distances": study is not None and any(rule.is_arranged for rule in study.listed_mixes),
        "sets": study is not None and study.makes_mixes,
        "variants": study is not None and bool(study.variants),
        "partitions": partitioned,
        "monitor": watched and (study is None or bool(study.cache.monitor)),
        "programs": programs is not None,
        "prediction": study is not None and study.predict is not None,
        "phases": programs is not None and phases,
        "events": programs is not None and bool(programs.counters.events),
        "topdown": programs is not None and bool(programs.counters.topdown),
        "topdown of phases": programs is not None and phases and bool(programs.counters.topdown),
        "services": services,
        "profile": programs is not None and bool(programs.counters.profile),
        "traces": programs is not None and programs.profile is not None,
        "primitives": programs is not None and programs.profile is not None and programs.profile.primitives,
        "recorded": recorded,
    }
    return [name for name, row in all_figures().items() if there[row.needs]]


def figures_of(study: Study, plan: "Plan") -> list[str]:
    """The figures that a study has by its plan."""
    return figure_names(
        study,
        partitioned=any(mix.partitions for mix in plan.mixes),
        phases=any(block.company.lead.phases for block in plan.blocks),
        watched=is_watched(plan),
        services=bool(service_workloads(plan)),
        recorded=bool(plan.traces) or bool(traces_there(StudyFolder.of(study.name))),
    )


@cache
def all_figures() -> dict[str, Figure]:
    """Ours, and after them those of plug-ins, by name."""
    return FIGURES | plugins.added("figures", _wrong, taken=FIGURES)


def _wrong(thing: object) -> str:
    """Why this is no figure of a plug-in; "" where it is one."""
    if not isinstance(thing, Figure):
        return f"it is a {type(thing).__name__}, and no castmates.report.figures.index.Figure"
    if thing.part not in get_args(Part) or thing.needs not in get_args(Need):
        return f"its part is '{thing.part}' ({', '.join(get_args(Part))}) and its needs '{thing.needs}'"
    return "" if thing.drawn_by else "it has no drawn_by, the name of the module that draws it"
