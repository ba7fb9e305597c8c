"""The parts of the page's section on traces, in their order: each a module of words, and a template that shows them."""

import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from castmates.report.results import Results
from castmates.report.text import trace_kernel, trace_paths, trace_phases, trace_recordings, trace_states
from castmates.results.named import study_argument
from castmates.results.traces import traces_there
from castmates.study.trace_launches import traceable_mixes


class TracePart(NamedTuple):
    """A part of the section: its template, and what makes its words; it is left out where there are none."""

    template: str
    context: Callable[[Results], Mapping[str, Any]]


class ShownPart(NamedTuple):
    """A part with its words."""

    template: str
    words: Mapping[str, Any]


PARTS = (
    TracePart("trace_recordings.html.j2", trace_recordings.context),
    TracePart("trace_states.html.j2", trace_states.context),
    TracePart("trace_paths.html.j2", trace_paths.context),
    TracePart("trace_kernel.html.j2", trace_kernel.context),
    TracePart("trace_phases.html.j2", trace_phases.context),
)


def trace_parts(results: Results) -> list[ShownPart]:
    """What the section shows; nothing where the study has no trace."""
    if not traces_there(results.folder):
        return []
    made = (ShownPart(part.template, part.context(results)) for part in PARTS)
    return [part for part in made if part.words]


def how_to_trace(results: Results) -> str:
    """How a study without a trace gets one, in a sentence; "" where it has one, or where nothing is started."""
    mixes = traceable_mixes(results.plan.mixes)
    if not mixes or results.plan.traces or traces_there(results.folder) or "modelled" in results.platforms:
        return ""
    study = study_argument(results.study_file) if results.study_file else " STUDY.yaml"
    return (
        "This study has no trace, which would show what threads do beside their neighbours and what they wait for: "
        f"`castmates trace record{study} {shlex.quote(mixes[0])}` makes one in a launch of its own."
    )
