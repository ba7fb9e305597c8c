"""The report: one self-contained HTML page, verdict first."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

import castmates
from castmates import plugins
from castmates.analysis.effects.contrasts import BIAS_LEVEL, SLICE_POINTS, WINDOW_POINTS
from castmates.analysis.effects.verdicts import CONTROL_LEVEL, NO_DATA, TOO_FEW, effect_level
from castmates.files import replace_text
from castmates.report.answer.answer import answer
from castmates.report.answer.drawing import WIDTH, curve_drawing, interval_scale, scale_of
from castmates.report.answer.parts import Answer
from castmates.report.figures.index import Part, View, all_figures, figures_of
from castmates.report.figures.texts import Texts, texts_for, texts_of
from castmates.report.page.common_parts import inline_svg, rendered
from castmates.report.results import Results, records
from castmates.report.text import (
    attribution,
    costs,
    design,
    findings,
    health,
    latency,
    machine,
    memory,
    nodes,
    operations,
    over_mixes,
    paths,
    prediction,
    primitives,
    recommendation,
    resources,
    services,
    system,
    trace_kernel,
    trace_paths,
    trace_phases,
    trace_recordings,
    trace_states,
    variants,
    whole_runs,
    words,
)
from castmates.report.text.stamps import first_words, origin, stamped, stamps
from castmates.report.text.step_summary import step_summaries
from castmates.results.columns.contract import Table
from castmates.results.columns.registry import TABLES
from castmates.results.traces import traces_there
from castmates.study.capabilities import PLACEBO
from castmates.study.remarks import on_mixes, on_partitions
from castmates.study.rounds import reasons

# What the page consists of: which figures stand under which heading, and what its menu lists.

HEADINGS: dict[Part, str] = {
    "losses": "Mixes in detail",
    "prediction": "Predicted, not measured",
    "operations": "Operations, traced",
    "recommendation": "Cache partitions",
    "why": "Causes",
    "traces": "Traces",
    "health": "Can you trust this?",
}

REFERENCE = {"tables": "All tables", "method": "Method", "machine": "Machine", "provenance": "Study"}

Links = list[tuple[str, str]]  # ids and short headings


@dataclass(frozen=True)
class FigurePart:
    """A part of the page that holds figures."""

    id: Part
    heading: str
    figures: list[View]


def figure_parts(names: Sequence[str]) -> list[FigurePart]:
    """The parts that hold these figures; the health panel has text too, so it is always there."""
    shown = [row for name, row in all_figures().items() if name in names]
    parts = [FigurePart(id, heading, [row for row in shown if row.part == id]) for id, heading in HEADINGS.items()]
    return [part for part in parts if part.figures or part.id == "health"]


TO_TRY = ("to-try", "What to try")


def contents(parts: Sequence[FigurePart], lacking: bool = False, found: bool = False) -> list[tuple[str, Links]]:
    """The page's parts in their order, in groups: the answer, what it consists of, whether it holds, and the rest."""
    trust = [part for part in parts if part.id == "health"]
    detail = [part for part in parts if part.id != "health"]
    return [
        ("", [("result", "Result"), *((part.id, part.heading) for part in detail), *([TO_TRY] if found else [])]),
        *([("Trust", [(trust[0].id, "Controls and noise"), ("rejected", "Disturbances")])] if trust else []),
        ("Reference", [*([("not-available", "Not available here")] if lacking else []), *REFERENCE.items()]),
    ]


CURVES = 4  # on the first screen
LISTED = 500  # launches; a browser takes long to show thousands of rows
ROWS = 50  # of a table that has no words of its own


def write_page(results: Results, figures: Path, output: Path, found: Answer | None = None) -> None:
    """Write the page, whole or not at all, with the SVGs of the folder `figures` inside."""
    texts = {name: texts_of(figures / name) for name in shown(results)}
    drawings = {name: inline_svg(figures / f"{name}.page.svg") for name, own in texts.items() if not own.lacking}
    replace_text(output, page(results, drawings, texts, found))


def shown(results: Results) -> list[str]:
    """The figures that the study asks for; one that has nothing to show is a line of `not_available`."""
    return figures_of(results.plan, results.folder)


def page(
    results: Results, drawings: Mapping[str, str], texts: Mapping[str, Texts] | None = None, found: Answer | None = None
) -> str:
    """The page's HTML; the figures' texts and the answer are made where they are not given."""
    texts = texts or {name: texts_for(name, results) for name in shown(results)}
    context = _context(results, drawings, texts, found or answer(results))
    return rendered("report.html.j2", context)


def not_available(texts: Mapping[str, Texts]) -> list[tuple[str, str]]:
    """The title of each figure that has nothing to show, and why."""
    return [(all_figures()[name].title, own.lacking) for name, own in texts.items() if own.lacking]


def of_traces(texts: Mapping[str, Texts]) -> dict[str, Texts]:
    """The figures of what traces show: where nothing was measured, that others have nothing to show is no news."""
    return {name: own for name, own in texts.items() if all_figures()[name].part in ("operations", "traces")}


def _further_tables(results: Results) -> Iterator[tuple[Table, str, list[dict[str, Any]], int]]:
    """Tables that need no words of their own: what a row of each is, the first ones, and how many more it has."""
    for table in TABLES.values():
        if table.heading and len(rows := getattr(results, table.name)):
            about = table.about.partition(": ")[2]
            yield table, about[:1].upper() + about[1:], records(rows[:ROWS]), max(0, len(rows) - ROWS)


def _context(
    results: Results, drawings: Mapping[str, str], texts: Mapping[str, Texts], found: Answer
) -> dict[str, Any]:
    texts = of_traces(texts) if results.only_traced else texts
    names = [name for name, own in texts.items() if not own.lacking]
    given_back = [*attribution.sentences(results), *attribution.despite(results)]
    told: dict[Part, bool] = {"why": bool(given_back), "losses": bool(found.all_pairs or results.plan.notes)}
    parts = _parts(list(texts), names, told)
    parts = [part for part in parts if part.id in ("operations", "traces")] if results.only_traced else parts
    found_here = findings.context(results)
    stamp = origin(results) or " and ".join(results.platforms) or "no numbers"
    return {
        "running_head": " · ".join([stamp, *(pill.word for pill in stamps(results))]),
        "results": results,
        "lang": "en-GB",
        "platform_state": "measured" if results.platforms == ["measured"] else "other",
        "platform_name": " and ".join(results.platforms) or "no numbers",
        "platform_stamp": stamp,
        "platform_words": words.platform_words(results.platforms),
        "answer": found,
        "scale": interval_scale(found, results.margin),
        "curves": [(curve, curve_drawing(curve)) for curve in found.curves[:CURVES]],
        "margin_pct": 100 * results.margin if results.margin is not None else None,
        "stamped": stamped(results),
        "first": first_words(results),
        "stamps": stamps(results),
        "health": health.summary(results),
        "rejections": health.rejections(results.windows),
        "rejected": words.rejection_sentence(results.launches, results.windows),
        "carryover": [health.carryover(row) for row in records(results.carryover)],
        "figures": {
            name: {
                "svg": Markup(drawings[name]),
                "alt": texts[name].alternative,
                "caption": texts[name].caption,
                "key": texts[name].key,
                "in_short": texts[name].in_short,
            }
            for name in names
        },
        "not_available": not_available(texts),
        "figure_parts": parts,
        "contents": contents(parts, lacking=len(names) < len(texts), found=bool(found_here["found"])),
        "has_placebo": results.asks(PLACEBO),
        "attribution": attribution.rows(results),
        "told_apart": attribution.same_for_all(results),
        "apart_in_ways": len(attribution.separations(results)) > 1,
        "given_back": given_back,
        "costs": costs.rows(results),
        "services": services.rows(results),
        "loads": services.advice(results),
        "saturated": services.saturated(results),
        "latency": latency.rows(results),
        "latency_needed": latency.needed(),
        "latency_refused": latency.refusals(results),
        "resources": resources.rows(results),
        "resources_lacking": resources.lacking(results),
        "power": resources.power_rows(results),
        "power_lacking": resources.lacking_power(results),
        "mbm_check": resources.mbm_check(results),
        "slices_used": design.used(results),
        "over_mixes": over_mixes.rows(results),
        "over_mixes_words": over_mixes.sentences(results),
        "variants": variants.rows(results),
        "variants_words": variants.sentences(results),
        "system": system.rows(results),
        "system_words": system.sentences(results),
        "system_headings": system.headings(results),
        "advice": recommendation.context(results),
        "predicted": prediction.context(results),
        "operations": operations.context(results),
        "step_summaries": list(step_summaries(results)),
        "paths": paths.context(results),
        "primitives": primitives.context(results),
        "findings": found_here,
        "trace_parts": trace_parts(results),
        "effects": [_effect(row) for row in records(results.effects)],
        "between": words.between(results.effects),
        "partitioned": results.partitioned,
        "notes": {"Mixes": on_mixes(results.plan.notes), "Partitions": on_partitions(results.plan.notes)},
        "cautions": [
            *results.plan.cautions,
            *memory.pages(results.measured_records),
            *whole_runs.instructions(results.measured_records),
        ],
        "memory_words": [*memory.bandwidth(results), *memory.throttles(results)],
        "controls": [health.control(row) for row in records(results.controls)],
        "launch_rows": _launches(results),
        "launches": len(results.launches),
        "settled": bool(health.settles(results)),
        "origins": machine.origins(results.records, results.machine, compared=len(results.nodes) > 0),
        "cast": design.cast(results.plan),
        "further_tables": list(_further_tables(results)),
        "machine": [*([] if results.machine.classes else machine.described(results.machine)), *_pages(results)],
        "machine_nodes": nodes.described(results),
        "nodes": _nodes(results),
        "machine_line": machine.in_a_line(results.machine),
        "lacks": machine.lacks(results.machine, results.partitioned),
        "quirks": machine.quirks(results.machine),
        "margin": f"±{words.percent_of(results.margin)}" if results.margin is not None else "the study's margin",
        "effect_level": f"{effect_level(results.extended):g}",
        "control_level": words.percent_of(CONTROL_LEVEL),
        "designs": design.designs(results.plan),
        "rounds_decided": reasons(results.plan, results.decisions),
        "provenance": _provenance(results),
        "bias_level": words.percent_of(BIAS_LEVEL),
        "slice_points": round(100 * SLICE_POINTS),
        "window_points": round(100 * WINDOW_POINTS),
    }


def _nodes(results: Results) -> dict[str, Any]:
    found = nodes.compared(results)
    values = (value for pair in found for one in pair.nodes for value in (one.low, one.high, one.loss))
    margin = 100 * results.margin if results.margin is not None else 0.0
    return {
        "sentences": nodes.sentences(results),
        "compared": found,
        "controls": nodes.controls(results),
        "scale": scale_of(values, margin, WIDTH),
    }


def _pages(results: Results) -> list[tuple[str, str]]:
    shares = memory.described(results.measured_records)
    return [("Memory on huge pages", shares)] if shares else []


def _parts(possible: Sequence[str], names: Collection[str], told: Mapping[Part, bool]) -> list[FigurePart]:
    """The parts of the page with the figures that have something to show; `told`: those that may have words alone."""
    parts = [
        replace(part, figures=[row for row in part.figures if row.name in names]) for part in figure_parts(possible)
    ]
    return [part for part in parts if part.figures or told.get(part.id, True)]


def _effect(row: Mapping[str, Any]) -> dict[str, Any]:
    few = row["verdict"] == TOO_FEW
    loss, found = words.loss_seen(row), words.effect(row)
    return {
        **row,
        "shown": found.amount,
        "interval": "–" if row["verdict"] == NO_DATA else found.ends + few * health.WITHIN,
        "half": (loss.high - loss.low) / 2,
        "rejection_pct": 100 * row["rejection_rate"],
        "baseline_rejection_pct": 100 * row["baseline_rejection_rate"],
    }


def _launches(results: Results) -> list[dict[str, Any]]:
    """The launches, with what each found out about its settle time; of very many those that failed or lost most."""
    nan = float("nan")
    settles = health.settles(results)
    rows = []
    for row in records(_listed(results.launches)):
        settle = settles.get((row["cohort"], row["launch"]))
        steady = settle.steady_after if settle else None
        times = {"settle": settle.seconds if settle else nan, "steady_after": nan if steady is None else steady}
        rows.append(row | times)
    return rows


def _listed(launches: pd.DataFrame) -> pd.DataFrame:
    failed = launches["status"] != "measured"
    worst = launches.assign(failed=failed).sort_values(["failed", "windows_rejected"], ascending=False, kind="stable")
    return launches.loc[worst.index[:LISTED].sort_values()]


def _provenance(results: Results) -> list[tuple[str, str]]:
    """Which study, which seed, which versions."""
    rows = [("Study", results.name)]
    if results.study:
        rows.append(("Seed", str(results.study.seed)))
    rows += [("Launches in the plan", str(len(results.plan.launches))), ("Castmates", castmates.__version__)]
    rows.append(("Snakemake", _version("snakemake")))
    rows += [(f"Plug-in {package}", version) for package, version in plugins.versions().items()]
    recorded: dict[str, set[str]] = {}
    for record in results.records:
        for name, version in record.versions.items():
            recorded.setdefault(name, set()).add(version)
    rows += [(f"{name}, when measured", ", ".join(sorted(versions))) for name, versions in sorted(recorded.items())]
    freezers = sorted({record.freezer for record in results.records} - {""})
    return [*rows, ("Members are frozen by", ", ".join(freezers))] if freezers else rows


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed here"


# The parts of the page's section on traces, in their order: each a module of words, and a template that shows them.


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
