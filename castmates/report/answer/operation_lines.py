"""What traces show, for a terminal: the step, what takes its time, and which operations lose, and beside what."""

import textwrap
from collections.abc import Iterator
from typing import Any

import pandas as pd

from castmates.analysis.effects.verdicts import LOSS, TOO_FEW
from castmates.analysis.explanations.layers import RUNTIME
from castmates.analysis.operations.effects import STEP
from castmates.analysis.operations.per_trace import WAITING
from castmates.english import counted, number
from castmates.report.results import Results, records
from castmates.report.text.operations import beside_words, operation_words, trouble_words
from castmates.report.text.words import Quantity, plain
from castmates.study.spec import UNMANAGED
from castmates.study.tracing_keys import FEWEST_FOR_INTERVALS

SHOWN = 8  # operations of a step, and of a loss
INTERVAL = 16  # letters
WIDTH = 100
LEAST = 0.005  # of a step: less is not named
SEEN = 0.05  # of a step: where operations have less, they are hidden; XLA leaves a thousandth
COMPILED = (
    "Hardly any of the step is in operations, as where XLA has compiled them into one: --without-xla keeps Keras from "
    "doing so unless the program asks for it (castmates help operations)."
)


def operation_lines(results: Results, width: int = WIDTH) -> Iterator[str]:
    """For each lead: its step alone, its operations, its losses; then what to know of the traces."""
    width = min(width, WIDTH)
    if results.iterations.empty:
        yield "Nothing was traced."
    for member, rows in results.iterations.groupby("member", sort=False):
        yield from _of_lead(results, str(member), rows, width)
    for sentence in trouble_words(results):
        yield ""
        yield from textwrap.wrap(sentence, width)


def _of_lead(results: Results, member: str, iterations: pd.DataFrame, width: int) -> Iterator[str]:
    alone = iterations[(iterations["kind"] == "alone") & (iterations["partition"] == UNMANAGED)]
    for row in records(alone):
        yield (
            f"A step of {plain(member)} takes {number(row['usual_ms'], 2)} ms alone, and {number(row['mean_ms'], 2)} "
            f"ms while it is traced ({counted(row['steps'], 'step')} in {counted(row['traces'], 'trace')})."
        )
        own = _of_scene(results.operation_summary, row)
        yield from textwrap.wrap(f"Of the step: {_parts(own)}.", width)
        yield ""
        yield "  of a step, alone          operation"
        yield from _summary(own)
        if own.loc[own["operation"] != "", "share"].sum() < SEEN and _may_be_compiled(results, member):
            yield ""
            yield from textwrap.wrap(COMPILED, width)
    effects = results.operation_effects[results.operation_effects["member"] == member]
    for _, own in effects.groupby(["mix", "partition"], sort=False):
        yield ""
        yield from _losses(own)


def _of_scene(table: pd.DataFrame, scene: Any) -> pd.DataFrame:  # noqa: ANN401
    own = table[(table["scene"] == scene["scene"]) & (table["member"] == scene["member"])]
    return pd.DataFrame(own[own["partition"] == scene["partition"]]).sort_values("shared_ms", ascending=False)


def _may_be_compiled(results: Results, member: str) -> bool:
    """Whether operations of a lead may be hidden in what XLA made of them: PyTorch and JAX show what they run."""
    workload = results.study.workloads.get(member.partition("@")[0]) if results.study else None
    return workload is None or workload.attach not in ("torch", "jax")


def _parts(own: pd.DataFrame) -> str:
    """What the directions take of a step, those that there are; `idle` is what is in no operation."""
    names = ("forward", "backward", "optimizer", "input")
    taken = {name: own.loc[own["direction"] == name, "share"].sum() for name in names}
    copies = own.loc[(own["direction"] == "") & (own["operation"] != ""), "share"].sum()
    idle = own.loc[own["operation"] == "", "share"].sum()
    rows = [(name, share) for name, share in [*taken.items(), ("copies", copies)] if share >= LEAST] + [("idle", idle)]
    return ", ".join(f"{name} {number(100 * share, 0)} %" for name, share in rows)


def _summary(own: pd.DataFrame) -> Iterator[str]:
    for row in records(own.head(SHOWN)):
        yield f"  {number(100 * row['share'], 0):>4} %  {number(row['shared_ms'], 3):>9} ms       {_name(row)}"
    if len(own) > SHOWN:
        rest = own.iloc[SHOWN:]
        share, ms = number(100 * rest["share"].sum(), 0), number(rest["shared_ms"].sum(), 3)
        yield f"  {share:>4} %  {ms:>9} ms       {len(rest)} others"


def _name(row: Any) -> str:  # noqa: ANN401
    if not row["operation"]:
        return "between operations" if row["type"] == RUNTIME else "outside of operations"
    if row["layer"] == WAITING:
        return WAITING
    words = operation_words(f"{row['operation']}:{row['type']}")
    return f"{words}, input" if row["direction"] == "input" else words


def _losses(own: pd.DataFrame) -> Iterator[str]:
    whole, groups = own[own["group"] == STEP], own[own["group"] != STEP]
    for row in records(whole):
        yield f"{_sentence(beside_words(row))}, a step takes {_longer(row)}: {_verdict(row)}."
    losing = groups[groups["verdict"] == LOSS].sort_values("difference_ms", ascending=False)
    if losing.empty:
        yield "  No operation is proven to lose."
        return
    yield "  loss of the operation     ms of the step            operation"
    for row in records(losing.head(SHOWN)):
        loss, ms = Quantity.of(row, "loss_pct"), Quantity.of(row, "difference_ms", "", 3, "difference")
        numbers = f"{loss.number:>5} %  {loss.interval:<{INTERVAL}}  {ms.number:>7}  {ms.interval:<{INTERVAL}}"
        yield f"  {numbers}  {operation_words(row['group'])}"
    if len(losing) > SHOWN:
        yield f"  … and {len(losing) - SHOWN} more operations that lose, in the report"


def _verdict(row: Any) -> str:  # noqa: ANN401
    few = row["verdict"] == TOO_FEW
    return (
        f"an interval takes {FEWEST_FOR_INTERVALS} launches, and there are {row['launches']}" if few else row["verdict"]
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _longer(row: Any) -> str:  # noqa: ANN401
    return f"{Quantity.of(row, 'difference_ms', 'ms', 2, 'difference')} longer"
