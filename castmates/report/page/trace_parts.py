"""The parts of the page's section on traces, in their order: each a module of words, and a template that shows them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from castmates.report.results import Results
from castmates.report.text import trace_kernel, trace_paths, trace_phases, trace_recordings, trace_states
from castmates.results.traces import traces_there


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
