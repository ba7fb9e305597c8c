"""What traces show, for a terminal: the step, what takes its time, what to try, and which operations lose."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from castmates.analysis.effects.verdicts import LOSS, TOO_FEW
from castmates.analysis.findings.conditions import SUSPECTED
from castmates.analysis.operations.effects import STEP
from castmates.english import counted, number
from castmates.report.results import Results, records
from castmates.report.text.operations import beside_words, told_apart, trouble_words
from castmates.report.text.step_summary import StepSummary, step_summaries
from castmates.report.text.words import Quantity
from castmates.results.named import study_argument
from castmates.study.class_names import workload_of
from castmates.study.tracing_keys import FEWEST_FOR_INTERVALS

LOSING = 3  # operations of a loss
FINDINGS = 3  # one fewer beside losses: all is to fit on a screen
INTERVAL = 16  # letters
WIDTH = 100
LABEL = 14  # letters before a row
SEEN = 0.05  # of a step: where operations have less, they are hidden; XLA leaves a thousandth
UNIT = re.compile(r"(?<=[\d…]) (?=[\d%…]|ms|MB)")  # a space within a number and its unit
COMPILED = (
    "Hardly any of the step is in operations, as where XLA has compiled them into one: --without-xla keeps Keras from "
    "doing so unless the program asks for it (castmates help operations)."
)


def operation_lines(results: Results, width: int = WIDTH) -> Iterator[str]:
    """For each lead: its step alone, its operations, its losses, what to try; then what to know of the traces."""
    width = min(width, WIDTH)
    if results.iterations.empty:
        yield "Nothing was traced."
    for summary in step_summaries(results):
        yield from _of_lead(results, summary, width)
    for sentence in trouble_words(results):
        yield ""
        yield from _wrapped(sentence, width)


def _of_lead(results: Results, summary: StepSummary, width: int) -> Iterator[str]:
    yield f"A step of {summary.lead} takes {summary.length} alone, and {summary.traced}."
    yield from _wrapped(f"Of the step: {summary.parts}.", width)
    yield ""
    yield "  of a step, alone          operation"
    for each in summary.operations:
        yield f"  {number(100 * each.share, 0):>4} %  {number(each.ms, 3):>9} ms       {each.name}"
    if _is_hidden(results, summary):
        yield ""
        yield from _wrapped(COMPILED, width)
    yield ""
    for what, words in summary.rows:
        yield from _wrapped(f"  {what:<{LABEL}}{words}", width, LABEL + 2)
    effects = results.operation_effects[results.operation_effects["member"] == summary.member]
    names = told_apart(effects["group"].unique())
    for _, rows in effects.groupby(["mix", "partition"], sort=False):
        yield ""
        yield from _losses(rows, names)
    yield from _findings(results, summary, FINDINGS if effects.empty else FINDINGS - 1, width)


def _is_hidden(results: Results, summary: StepSummary) -> bool:
    """Whether hardly anything is in operations, and may be hidden in what XLA made of them."""
    seen = sum(each.share for each in summary.directions if each.name != "idle")
    workload = results.study.workloads.get(workload_of(summary.member)) if results.study else None
    # PyTorch and JAX show what they run.
    return seen < SEEN and (workload is None or workload.attach not in ("torch", "jax"))


def _findings(results: Results, summary: StepSummary, most: int, width: int) -> Iterator[str]:
    """What is found or suspected of the lead, each with the first sentence of what to do."""
    if summary.found:
        yield ""
    for each in summary.found[:most]:
        sure = each.sure if each.state == SUSPECTED else each.state
        advice = each.advice.partition(". ")[0].rstrip(".")
        yield from _wrapped(f"! {each.title} ({sure}). {each.sentence}", width, 2)
        yield from _wrapped(f"  {advice}.", width, 2)
    if summary.found:
        more = f"{counted(len(summary.found) - most, 'more finding')}, why" if len(summary.found) > most else "Why"
        study = study_argument(results.study_file) if results.study_file else " STUDY.yaml"
        every = " --all" if any(each.state == SUSPECTED for each in summary.found) else ""
        yield ""
        yield f"{more}, and how to try advice: castmates advice{study}{every}"


def _wrapped(text: str, width: int, hang: int = 0) -> list[str]:
    """Lines that end in no number whose unit the next one has."""
    lines = textwrap.wrap(UNIT.sub("\N{NO-BREAK SPACE}", text), width, subsequent_indent=" " * hang)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _losses(own: pd.DataFrame, names: Mapping[str, str]) -> Iterator[str]:
    whole, groups = own[own["group"] == STEP], own[own["group"] != STEP]
    for row in records(whole):
        yield f"{_sentence(beside_words(row))}, a step takes {_longer(row)}: {_verdict(row)}."
    losing = groups[groups["verdict"] == LOSS].sort_values("difference_ms", ascending=False)
    if losing.empty:
        yield "  No operation is proven to lose."
        return
    yield "  loss of the operation     ms of the step            operation"
    for row in records(losing.head(LOSING)):
        loss, ms = Quantity.of(row, "loss_pct"), Quantity.of(row, "difference_ms", "", 3, "difference")
        numbers = f"{loss.number:>5} %  {loss.interval:<{INTERVAL}}  {ms.number:>7}  {ms.interval:<{INTERVAL}}"
        yield f"  {numbers}  {names[row['group']]}"
    if len(losing) > LOSING:
        yield f"  … and {len(losing) - LOSING} more operations that lose, in the report"


def _verdict(row: Any) -> str:  # noqa: ANN401
    few = row["verdict"] == TOO_FEW
    return (
        f"an interval takes {FEWEST_FOR_INTERVALS} launches, and there are {row['launches']}" if few else row["verdict"]
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _longer(row: Any) -> str:  # noqa: ANN401
    return f"{Quantity.of(row, 'difference_ms', 'ms', 2, 'difference')} longer"
