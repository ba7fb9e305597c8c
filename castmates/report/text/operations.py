"""What traces of steps show, in words: which operations a loss comes from, and what tracing costs."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from castmates.analysis.effects.verdicts import LOSS
from castmates.analysis.operations.effects import SMALL, STEP
from castmates.english import counted, listed, number
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, plain
from castmates.results.profiles import analysed_profiles
from castmates.study.profile_launches import (
    CANNOT_BEGIN,
    CANNOT_LOG,
    WHO_CAN,
    cannot_be_profiled,
    cannot_begin_anew,
    cannot_log,
    traced_by,
)
from castmates.study.spec import UNMANAGED, Launch

NAMED = 3  # operations that a sentence names
MOST_MEMORY = 5  # operations of a scene in the table of memory
LISTED = 40  # rows of a table on the page; the CSV has all
Row = Mapping[str, Any]
_HOW = re.compile(r"_?(Mkl)?(Native)?_?")
_GRADIENTS = ("gradient_tape/", "transpose(jvp)/")  # before the names of gradients: TensorFlow's and JAX's
FROM_ROUNDS = ": they enter no rate, and the losses elsewhere on this page come from the rounds"
_WRITTEN = {"unattributed": "outside of operations"}


def operation_words(group: str) -> str:
    """A group as people read it: `ranking/mlp/dense: MatMul, gradient`."""
    name, colon, type_ = group.rpartition(":")
    if group.startswith(SMALL):
        kinds = dict.fromkeys(group.removeprefix(SMALL).rsplit(" ", 1))  # an optimizer's are of the kind optimizer
        return f"small operations ({', '.join(filter(None, kinds))})"
    if not colon:
        return _WRITTEN.get(group, group)
    backward = name.startswith(_GRADIENTS)
    for prefix in _GRADIENTS:
        name = name.removeprefix(prefix)
    scope, _, last = name.rpartition("/")
    what = _HOW.sub("", type_, count=1)
    scope = scope.removesuffix(what).rstrip("/")
    what = last if last.startswith(what) else what  # gradients by input and by weights differ in a number
    return f"{scope + ': ' if scope else ''}{what}{', gradient' if backward else ''}"


def told_apart(groups: Iterable[str]) -> dict[str, str]:
    """`operation_words` of each; of several that would be called the same, the whole name: `A/mmA0 (MatMul)`."""
    words = {group: operation_words(group) for group in groups}
    many = Counter(words.values())
    whole = {group: "{0} ({2})".format(*group.rpartition(":")) for group in words}
    return {group: short if many[short] == 1 else whole[group] for group, short in words.items()}


def context(results: Results) -> dict[str, Any]:
    """What the section of the page is made of."""
    if not results.plan.profiles:
        return {}
    names = told_apart(results.operation_effects["group"])
    return {
        "sentences": [*loss_words(results), *quality_words(results)],
        "effects": [_effect(row, names) for row in records(_shown(results.operation_effects))],
        "summary": _largest(results.operation_summary),
        "types": _largest(results.operation_types),
        "layers": _largest(results.operation_layers[results.operation_layers["depth"] <= 2]),
        "iterations": [_iteration(row) for row in records(results.iterations)],
        "input": [_waiting(row) for row in records(results.input_pipeline)],
        "epochs": [_epoch(row) for row in records(results.first_epoch)],
        "stages": [_changed(row, 3) for row in records(results.input_stages)],
        "kernels": [{**row, "who": scene_words(row)} for row in records(_longest(results.kernels))],
        "memory": [_changed(row, 2) for row in records(_memory(results.memory_use))],
        "pools": [_changed(row, 1, 100) for row in records(results.thread_pools)],
    }


def loss_words(results: Results) -> Iterator[str]:
    """Which operations make a step longer, where both the step and the operation are proven to be."""
    table = results.operation_effects
    if not results.plan.profiles:  # tables of a study that traces nothing any more
        return
    longer = (table["verdict"] == LOSS) & (table["difference_low"] > 0)
    for step in records(table[longer & (table["group"] == STEP)].sort_values("difference_ms", ascending=False)):
        own = table[longer & _same(table, step) & (table["group"] != STEP)]
        own = own.sort_values("difference_ms", ascending=False).head(NAMED)
        parts = [
            f"{number(row['difference_ms'], 2)} ms of it ({share_words(row)}) in {operation_words(row['group'])}"
            for row in records(own)
        ]
        yield (
            f"In traced steps, one of {plain(step['member'])} takes "
            f"{Quantity.of(step, 'difference_ms', 'ms', 2, 'difference')} longer {beside_words(step)}: "
            f"{listed(parts) if parts else 'no operation is proven to be the one'}."
        )


def share_words(row: Row) -> str:
    """What of a step's loss an operation has, in per cent, with its interval where there is one."""
    return str(Quantity.of(row, "share_of_loss", "%", 0) * 100)


def quality_words(results: Results) -> Iterator[str]:
    """What to know of traces: what they cost, how exact they are, what was not compared."""
    if len(results.iterations):
        slower = results.iterations["slower"]
        ends = dict.fromkeys((number(slower.min(), 2), number(slower.max(), 2)))
        yield (
            f"Traced steps take {' to '.join(ends)} times as long as usual ones "
            f"right before and after{'' if results.only_traced else FROM_ROUNDS}."
        )
    alignment = [
        trace["alignment_us"]
        for record in results.profiled
        for trace in record.get("traces", ())
        if "alignment_us" in trace
    ]
    if alignment:
        yield f"The clocks of traces and heartbeats agree to {number(max(alignment), 1)} µs or better."
    if len(results.iterations) and any(_leaves_out(launch) for launch in results.plan.profiles):
        yield (
            "TensorFlow leaves out operations that take less than about 3 µs; their time counts as between operations, "
            "or as outside of them."
        )
    yield from trouble_words(results)


def trouble_words(results: Results) -> Iterator[str]:
    """What was not traced, not used or not compared, and why."""
    yield from analysed_profiles(results.plan, results.folder)[1]
    for (member, scene, reason), rows in results.not_compared.groupby(["member", "scene", "reason"]):
        yield (
            f"{counted(len(rows), 'trace')} of {plain(str(member))} in {scene} cannot be compared with it alone: "
            f"{reason}."
        )
    if results.study is not None and (cannot := cannot_be_profiled(results.study, results.plan)):
        yield f"{listed(cannot)} cannot be traced: {WHO_CAN}."
    if results.study is not None and (without := cannot_begin_anew(results.study, results.plan)):
        yield f"{listed(without)} {CANNOT_BEGIN}."
    if results.study is not None and (without := cannot_log(results.study, results.plan)):
        yield f"{listed(without)} {CANNOT_LOG}."
    failed = [record for record in results.profiled if record.get("status") == "failed"]
    for record in failed:
        yield f"The profile launch {record['cohort']}/{record['launch']} failed: {record['reason']}"
    yield from _unused(results)
    for record in results.profiled:
        for trace in record.get("traces", ()):
            if trace.get("reason") and not trace.get("taken"):
                yield f"{trace['scene']} was not traced in {record['cohort']}/{record['launch']}: {trace['reason']}"


def _unused(results: Results) -> Iterator[str]:
    """Traces of first and cached epochs that show no steps of either, by lead and reason."""
    traces = [(record["lead"], each) for record in results.profiled for each in record.get("traces", ())]
    unused = Counter(
        (lead, each["epoch"], each["reason"]) for lead, each in traces if each.get("taken") and each["reason"]
    )
    for (lead, epoch, why), many in unused.items():
        yield f"{counted(many, 'trace')} of {lead} in its {epoch} epoch cannot be used: {why}."


def _leaves_out(launch: Launch) -> bool:
    """Whether a launch's traces lack short operations."""
    how = traced_by(launch.cohort)
    return how is not None and how.leaves_out


def beside_words(row: Row) -> str:
    """Beside whom, and under which partition."""
    beside = f"beside {plain(row['mix'].partition('+')[2])}" if row["mix"] else "alone"
    return beside if row["partition"] == UNMANAGED else f"{beside} under {row['partition']}"


def scene_words(row: Row) -> str:
    """Who, beside whom, and under which partition."""
    return f"{plain(row['member'])} {beside_words(row if row['kind'] == 'corun' else {**row, 'mix': ''})}"


def _same(table: pd.DataFrame, row: Row) -> "pd.Series[bool]":
    same = pd.Series(data=True, index=table.index)
    for name in ("mix", "partition", "member", "platform"):
        same &= table[name] == row[name]
    return same


def _shown(effects: pd.DataFrame) -> pd.DataFrame:
    order = effects.assign(whole=effects["group"] == STEP)
    return order.sort_values(
        ["member", "mix", "partition", "whole", "alone_ms"], ascending=[True, True, True, False, False]
    )


def _effect(row: Row, names: Mapping[str, str]) -> Row:
    return {
        **row,
        "who": f"{plain(row['member'])} {beside_words(row)}",
        "what": names[row["group"]],
        "loss": Quantity.of(row, "loss_pct"),
        "difference": Quantity.of(row, "difference_ms", digits=2, stem="difference").interval,
        "of_loss": "" if math.isnan(row["share_of_loss"]) else share_words(row),
        "whole": row["group"] == STEP,
    }


def _largest(table: pd.DataFrame) -> dict[str, Any]:
    """The largest rows of each lead alone."""
    alone = table[(table["kind"] == "alone") & (table["partition"] == UNMANAGED)]
    rows = alone.sort_values("shared_ms", ascending=False).groupby(["member", "platform"], sort=False).head(LISTED)
    rows = rows.sort_values(["member", "shared_ms"], ascending=[True, False])
    return {
        "rows": [_operation(row) for row in records(rows)],
        "more": len(alone) - len(rows),
    }


def _operation(row: Row) -> Row:
    return {**row, "who": plain(row["member"]), "shared": Quantity.of(row, "shared_ms", digits=3, stem="shared")}


def _longest(kernels: pd.DataFrame) -> pd.DataFrame:
    """The longest kernels of each scene."""
    return kernels.groupby(["scene", "member", "platform", "device"], sort=False).head(LISTED)


def _memory(table: pd.DataFrame) -> pd.DataFrame:
    """The sums of each scene, and below each the operations that are given most."""
    return table.groupby(["scene", "member", "platform", "allocator"], sort=False).head(1 + MOST_MEMORY)


def _iteration(row: Row) -> Row:
    return {**row, "who": scene_words(row)}


def _waiting(row: Row) -> Row:
    return {**_changed(row, 1, 100), "waiting": Quantity.of(row, "waiting_share", stem="waiting") * 100}


def _epoch(row: Row) -> Row:
    """A row of the first epoch, or of a cached one beside it."""
    longer, more = change_words(row, 2, of="longer"), change_words(row, 1, 100, of="more")
    return {**_waiting(row), "longer_words": longer, "more_words": more}


def _changed(row: Row, digits: int, factor: float = 1.0) -> Row:
    return {**row, "who": scene_words(row), "change": change_words(row, digits, factor)}


def change_words(row: Row, digits: int, factor: float = 1.0, of: str = "difference") -> str:
    """How much more it is beside others than alone, with its interval; "" alone, and where nothing can be compared."""
    change = Quantity.of(row, of, digits=digits) * factor
    return "" if math.isnan(change.value) else f"{'+' if change.value > 0 else ''}{change}"
