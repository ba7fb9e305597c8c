"""A published study and what was measured again of it -> what a replay shows, before it is put into words."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from castmates.analysis.comparison.launches import launch_means, plain_members, questions
from castmates.analysis.comparison.replay import replayed
from castmates.analysis.core import LAUNCHES, SESSIONS, between, these
from castmates.analysis.effects.stamps import TRUSTWORTHY
from castmates.analysis.effects.verdicts import (
    AGREES,
    DIFFERS,
    NEW_HERE,
    NO_DATA,
    NOT_HERE,
    PLATFORMS_DIFFER,
    SENSITIVE,
    TOO_FEW,
    UNCLEAR,
)
from castmates.analysis.keys import LAUNCH, ROW
from castmates.files import replace_text, writing
from castmates.report.comparison import figure
from castmates.report.comparison.compare import Compared, compare_measured
from castmates.report.comparison.details import NOT_RECORDED, Difference
from castmates.report.comparison.words import hours
from castmates.report.page.common_parts import first_words, rendered, write_drawing
from castmates.report.results import records
from castmates.report.text.words import Quantity, Row, as_loss, chance, counted, listed, number, percent_of
from castmates.results.find import Measured
from castmates.results.tables import write_table
from castmates.study.machine_keys import difference, recorded
from castmates.study.spec import UNMANAGED

ALL_AGREE, SOME_DIFFER, UNDECIDED = 0, 3, 4  # how the command ends; 1 is an error, 2 a wrong option
KEY = ["mix", "member", "baseline", "partition"]  # of a published effect
PRINTED = 0.001  # a published slowdown that is further from that of its own windows is another number


@dataclass(frozen=True)
class Contradiction:
    """A published number that the published windows do not give."""

    mix: str
    member: str
    baseline: str
    partition: str
    table: float  # slowdown in the published table
    windows: float  # and from the published windows


@dataclass(frozen=True)
class Replayed:
    """What a replay shows."""

    pair: Compared  # A is what was published, B what was measured here
    table: pd.DataFrame  # the columns of REPLAY
    another_class: str | None  # in what the machine is of another class, a clause; "" for the same, None: not known
    differences: Sequence[str]  # in machine, versions, design and programs, each a sentence
    notes: Sequence[str]  # what the replay changed, and why
    contradictions: Sequence[Contradiction]

    @cached_property
    def effects(self) -> pd.DataFrame:
        """The published effects; what was measured here and never published is left out."""
        return self.table[self.table["verdict"] != NEW_HERE]

    @property
    def status(self) -> int:
        """How the command ends."""
        verdicts = set(self.effects["verdict"])
        if DIFFERS in verdicts or self.contradictions:
            return SOME_DIFFER
        return ALL_AGREE if verdicts == {AGREES} else UNDECIDED


def replay_of(
    published: Measured,
    here: Measured,
    margin: float | None,
    named: str = "",
    notes: Sequence[str] = (),
    effects: pd.DataFrame | None = None,
) -> Replayed:
    """Compare both; `effects` is the published table of effects, where there is one.

    `named` is how the published study was named: where it lies may be a folder that will be gone.
    """
    (pair,) = compare_measured([published, here], margin).pairs
    table = replayed(pair.table, pair.margin)
    # Figure and table show one verdict: that of the replay.
    judged = pair.table.assign(verdict=table["verdict"], p_holm=table["p_holm"])
    pair = replace(pair, a=replace(pair.a, folder=named or pair.a.folder), table=judged)
    return Replayed(
        pair=pair,
        table=table,
        another_class=other_class(published.machine, here.machine),
        differences=machine_sentences(published.machine, here.machine, [*pair.differences, *pair.work]),
        notes=notes,
        contradictions=[] if effects is None else contradictions(published, effects),
    )


def contradictions(published: Measured, effects: pd.DataFrame) -> list[Contradiction]:
    """Where the published table of effects has another number than the published windows give.

    Of several nodes the table has means over nodes, which these windows do not name: they are left out. So are rows of
    another number of sessions, as where a part of the study is replayed.
    """
    names = plain_members(published.plan)
    stated = effects[effects["slowdown"].notna()]
    plain = [names.get((mix, member), "") for mix, member in zip(stated["mix"], stated["member"], strict=True)]
    stated = stated.assign(member=plain)
    over = stated["over"] if "over" in stated else pd.Series("", index=stated.index)
    found = _slowdowns(published)
    both = [stated[over.isin(["", LAUNCHES])].merge(found.rename(columns={"over_launches": "windows"}), on=KEY)]
    if len(own := stated[over.isin([SESSIONS, these(SESSIONS)])]):
        both.append(own.merge(found.rename(columns={"over_sessions": "windows"}), on=[*KEY, SESSIONS]))
    return [
        Contradiction(**{name: str(row[name]) for name in KEY}, table=row["slowdown"], windows=row["windows"])
        for row in pd.concat(both).to_dict("records")
        if abs(math.log(row["slowdown"] / row["windows"])) > PRINTED
    ]


def _slowdowns(published: Measured) -> pd.DataFrame:
    """By mix, member, baseline and partition: the slowdown over launches and over sessions, and how many these are."""
    launches = launch_means(published.plan, published.windows)
    values = launches[["loss"]].rename(columns={"loss": "value"})
    found = between(values, launches.groupby(LAUNCH)["session"].first(), SESSIONS, ROW)
    found = found.assign(mean=values["value"].groupby(ROW).mean()).reset_index("platform", drop=True)
    found = questions(published.plan).join(found, how="inner")
    means = {"over_launches": np.exp(found["mean"]), "over_sessions": np.exp(found[f"{SESSIONS}_mean"])}
    return found.assign(**means)[[*KEY, SESSIONS, *means]]


# In what a replay was measured differently: machine, versions, design, programs; a sentence for each difference.

Machine = Mapping[str, Any]  # machine.json
# What machine.json has beside the terms that every comparison shows.
MORE: Mapping[str, Callable[[Machine], object]] = {
    "Microcode": lambda machine: machine.get("microcode"),
    "Compiler": lambda machine: machine.get("compiler"),
    "SMT": lambda machine: _smt(machine.get("topology") or {}),
    "NUMA balancing": lambda machine: {0: "off", 1: "on"}.get(machine.get("numa_balancing", -1)),
    "Address randomisation": lambda machine: machine.get("aslr"),
}
MITIGATIONS = "Mitigations of vulnerabilities"
# Names of the host say nothing about what it is.
LEFT_OUT = ("Host", "Host of the launches")


def other_class(published: Machine, here: Machine) -> str | None:
    """In what the machine is of another class than the published one, as a clause; "" where it is of the same.

    None where the topology of one of them was not recorded. Modelled machines are of one class if they have one model.
    """
    if published.get("model") or here.get("model"):
        return "" if published.get("model") == here.get("model") else "its model has other parameters"
    there, ours = recorded(published), recorded(here)
    if there is None or ours is None:
        return None
    return difference(there, ours)


def machine_sentences(published: Machine, here: Machine, rows: Sequence[Difference]) -> list[str]:
    """Everything that was recorded and is not the same: first the rows of the comparison, then what else is known."""
    known = [(what, there, ours) for what, there, ours in rows if what not in LEFT_OUT]
    return [_sentence(*row) for row in (*known, *_more(published, here))]


def _more(published: Machine, here: Machine) -> Iterator[tuple[str, str, str]]:
    for what, fact in MORE.items():
        there, ours = fact(published), fact(here)
        if there != ours:
            yield what, _text(there), _text(ours)
    there, ours = published.get("mitigations") or {}, here.get("mitigations") or {}
    names = sorted(name for name in {*there, *ours} if there.get(name) != ours.get(name))
    if names and there and ours:
        words = ["; ".join(f"{name}: {_text(side.get(name))}" for name in names) for side in (there, ours)]
        yield MITIGATIONS, words[0], words[1]


def _sentence(what: str, there: str, ours: str) -> str:
    return f"{what}: {ours} here, {there} in the published study."


def _text(fact: object) -> str:
    return NOT_RECORDED if fact is None else str(fact)


def _smt(topology: Mapping[str, Any]) -> str | None:
    return ("on" if topology["siblings"] else "off") if topology.get("siblings") is not None else None


# A replay -> plain sentences, and the rows of its table; what they claim is decided elsewhere.

UNKNOWN_CLASS = (
    "Whether this machine is of the class of the published one is not known: the topology of one of them was not "
    "recorded."
)
SHOWN = 8  # of a kind; the table has them all
IN_ORDER = (AGREES, DIFFERS, UNCLEAR, TOO_FEW, NO_DATA, NOT_HERE, PLATFORMS_DIFFER)


def stamp(replay: Replayed) -> str:
    """What stands first where the machine is of another class than the published one."""
    return "another class of machine" if replay.another_class else ""


def headline(replay: Replayed) -> str:
    """2 of 3 effects agree within 2 %; 1 differs."""
    counts = Counter(replay.effects["verdict"])
    total = len(replay.effects)
    margin = percent_of(replay.pair.margin)
    if counts[AGREES] == total:
        what = "The only effect agrees" if total == 1 else f"All {total} effects agree"
        return f"{what} with what was published, within {margin}."
    parts = [f"{counts[AGREES]} of {counted(total, 'effect')} {_verb(counts[AGREES], 'agree')} within {margin}"]
    parts += [f"{counts[DIFFERS]} {_verb(counts[DIFFERS], 'differ')}"] if counts[DIFFERS] else []
    parts += [f"{counts[UNCLEAR]} {_be(counts[UNCLEAR])} {UNCLEAR}"] if counts[UNCLEAR] else []
    parts += [f"{counts[word]}: {word}" for word in IN_ORDER[3:] if counts[word]]
    return "; ".join(parts) + "."


def sentences(replay: Replayed) -> list[str]:
    """What stands before the table, the most important first."""
    return [
        *([f"This machine is of another class than the published one: {replay.another_class}."] * bool(stamp(replay))),
        headline(replay),
        *([UNKNOWN_CLASS] * (replay.another_class is None)),
        *_effects(replay),
        *(_contradiction(each) for each in replay.contradictions[:SHOWN]),
        *_one_sided(replay),
        *hours([replay.pair], {"A": "published", "B": "here"}),
        *replay.notes,
        f"Published: {replay.pair.a.sentence.partition(' is ')[2]}",
        f"Here: {replay.pair.b.sentence.partition(' is ')[2]}",
    ]


def rows(replay: Replayed) -> list[dict[str, Any]]:
    """The rows of the table: numbers with their intervals, in words."""
    return [_row(row) for row in records(replay.table)]


def control_notes(stamps: pd.DataFrame) -> list[str]:
    """What the replay's own controls leave open: what they do not vouch for may differ because of the machine."""
    wanted = {"control": TRUSTWORTHY, "sensitivity": SENSITIVE}
    return [
        f"Controls of the replay: {row['word']}. {row['sentence']}"
        for row in records(stamps)
        if row["stamp"] in wanted and row["word"] != wanted[row["stamp"]]
    ]


def _row(row: Row) -> dict[str, Any]:
    partition = row["partition"]
    if row["partition_here"] not in ("", partition):
        partition = f"{partition} / {row['partition_here']}"
    return {
        **row,
        "where": partition + ("*" if row["masks"] == "differ" else ""),
        "said_published": str(Quantity.loss(row, "published_slowdown")),
        "said_here": str(Quantity.loss(row, "here_slowdown")),
        "said_ratio": str(Quantity.of(row, "ratio", digits=3)),
        "said_joint": str(Quantity.loss(row, "joint_slowdown")),
        "said_p": chance(row["p_holm"]),
    }


def _effects(replay: Replayed) -> Iterator[str]:
    """The leads against alone: what differs before what agrees, which the table has too."""
    table = replay.effects
    told = table[(table["verdict"] == DIFFERS) | ((table["role"] == "lead") & (table["baseline"] == "alone"))]
    order = told["verdict"].map({word: place for place, word in enumerate((DIFFERS, UNCLEAR, AGREES))}).fillna(3)
    chosen = told.assign(order=order).sort_values("order", kind="stable")
    for row in records(pd.DataFrame(chosen))[:SHOWN]:
        yield _effect(row, replay.pair.margin)
    if len(chosen) > SHOWN:
        yield f"{len(chosen) - SHOWN} more of these effects are in the table."


def _effect(row: Row, margin: float) -> str:
    published, here, joint = (Quantity.loss(row, f"{name}_slowdown") for name in ("published", "here", "joint"))
    losses = f"{_who(row)}: loss of {published} % published, {here} % here"
    many = f"{row['published_launches']} and {counted(int(row['here_launches']), 'launch')}"
    if row["verdict"] in (NOT_HERE, NO_DATA, PLATFORMS_DIFFER, TOO_FEW):
        return f"{losses} ({many}): {row['verdict']}."
    change = f"slowdown here over the published one {Quantity.of(row, 'ratio', digits=3)}"
    # Shown beside every verdict but one: chosen because an effect agrees, the interval would hold the truth less often.
    both = f"; both together give {joint} %"
    finding = {AGREES: f"agrees within {percent_of(margin)}{both}", DIFFERS: "differs"}.get(
        row["verdict"], f"{UNCLEAR}, more launches or sessions decide it{both}"
    )
    return f"{losses} ({many}; {change}): {finding}."


def _who(row: Mapping[str, Any]) -> str:
    beside = f" beside {str(row['antagonists']).replace('+', ' + ')}" if row["antagonists"] else ""
    if row["role"] != "lead":
        beside = f" in {row['mix']}"
    under = "" if row["partition"] == "unmanaged" else f" under {row['partition']}"
    against = "" if row["baseline"] == "alone" else f", against {row['baseline']}"
    return f"{row['member']}{beside}{under}{against}"


def _contradiction(each: Contradiction) -> str:
    table, windows = (number(as_loss(value)) for value in (each.table, each.windows))
    under = "" if each.partition == "unmanaged" else f" under {each.partition}"
    return (
        f"The published table has a loss of {table} % for {each.member} in {each.mix}{under} against {each.baseline}, "
        f"and the published windows give {windows} %: one of them is not what was measured."
    )


def _one_sided(replay: Replayed) -> Iterator[str]:
    for word, verb in ((NOT_HERE, "has no counterpart here"), (NEW_HERE, "was measured here and never published")):
        own = replay.table[replay.table["verdict"] == word]
        if len(own):
            places = [
                mix if partition == "unmanaged" else f"{mix}@{partition}"
                for mix, partition in own[["mix", "partition"]].drop_duplicates().itertuples(index=False)
            ]
            more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
            names = listed(places) if not more else ", ".join(places[:SHOWN]) + more
            verb = verb if len(places) == 1 else verb.replace("has ", "have ").replace("was ", "were ")
            yield f"{names} {verb}."


def _verb(count: int, verb: str) -> str:
    return verb + "s" * (count == 1)


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


# The page of a replay: one self-contained HTML file with the look of a comparison's.


def page(replay: Replayed, drawing: Markup) -> str:
    """The page's HTML."""
    words, first = sentences(replay), first_words(replay.pair.origin)
    return rendered(
        "replay.html.j2",
        {
            "replay": replay,
            "title": f"{replay.pair.a.name}, measured again",
            "stamp": stamp(replay),
            "first": first,
            "sentences": words,
            "rows": rows(replay),
            "between": replay.pair.between,
            "partitioned": bool((replay.table["partition"] != UNMANAGED).any()),
            "drawing": drawing,
            "caption": caption(replay),
            "alternative": first + " ".join(words),
        },
    )


def caption(replay: Replayed) -> str:
    """What stands below the figure."""
    pair = replay.pair
    return (
        f"{first_words(pair.origin)}Left: loss of each lead against its own rate alone, as published (A, grey) and "
        f"as measured here (B), with 95 % t intervals {pair.between}. Right: by how much the slowdown here is above "
        "the published one, with Welch's 95 % interval, and the margin of "
        f"±{100 * pair.margin:.3g} %. Losses are ratios inside each study: being faster costs a machine nothing."
    )


def write(replay: Replayed, folder: Path) -> list[Path]:
    """Write table, figure and page."""
    write_table(replay.table, folder / "replay")
    drawing = write_drawing(*figure.draw(replay.pair), folder / "replay-figure")
    with writing(output := folder / "index.html"):
        replace_text(output, page(replay, drawing))
    return [output, folder / "replay.csv", folder / "replay-figure.svg"]
