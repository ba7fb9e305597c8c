"""The outline of a study on a terminal: the answer first, then who runs beside whom, then what to expect and to do."""

import math
import re
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from castmates.english import listed, percent
from castmates.extras import SWEEP, TRACE, lacking_words
from castmates.project import Project
from castmates.results.named import study_argument
from castmates.study import profile_launches
from castmates.study.counter_keys import described
from castmates.study.cpus import format_cpu_list
from castmates.study.node_classes import parts_of
from castmates.study.rehearsing import NO_EFFECT, PLATFORM
from castmates.study.remarks import on_mixes, on_partitions
from castmates.study.spec import Plan
from castmates.terminal.preview import duration, isolation
from castmates.terminal.preview.duration import DASH, Amount, Chance, Chances, between, minutes_between
from castmates.terminal.preview.outline import Launched, Outline, Row

DOT = "\N{BLACK CIRCLE}"
MATRIX = 44  # letters that the names of all antagonists may take, to be heads of columns
MANY = 3  # partitions of a kind, beyond which only the first and the last are named
SHOWN = 2  # notes
BUILT = {"native": "compiling the programs in C"}
MUST = {"positive": "must lose more than the margin", "negative": "must not"}


def screen(outline: Outline) -> Group:
    """What `castmates plan` prints first."""
    head = Text.assemble((outline.study, "bold"), "   ", (headline(outline), "bold green"))
    about = Text(" · ".join(filter(None, [outline.title, outline.file])), style="dim")
    return Group(head, about, Text(), _matrix(outline), Text(), _facts(outline), Text(), _next(outline))


def headline(outline: Outline) -> str:
    """How long it takes, how many launches there are, and how many are measured."""
    total, (least, most) = outline.total, outline.to_measure
    if not most:
        return ". ".join(filter(None, [f"everything is measured: {total.measured} launches", outline.precision]))
    time = f"about {minutes_between(*outline.seconds)}"
    if not total.measured:
        return f"{time}, {_launches(total.launches)}, nothing measured yet"
    return f"{time}, {between(least, most)} of {_launches(total.launches)} left"


def _launches(count: tuple[int, int]) -> str:
    return f"{between(*count)} launch{'' if count[1] == 1 else 'es'}"


def _matrix(outline: Outline) -> Table:
    """A row for each program, a dot for each of its antagonists; names instead of dots where those are too many."""
    names = list(dict.fromkeys(name for row in outline.rows for name in row.beside))
    dots = sum(len(name) + 2 for name in names) <= MATRIX
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", overflow="fold")
    if dots:
        for name in names:
            table.add_column(name, justify="center", no_wrap=True)
    else:
        table.add_column("beside", overflow="fold", ratio=1)
    if outline.partitions:
        table.add_column("partitions", justify="right", no_wrap=True)
    table.add_column("CPUs", justify="right", overflow="fold")
    for name in ("launches", "windows", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in outline.rows:
        beside = [DOT if name in row.beside else "" for name in names] if dots else [", ".join(row.beside)]
        table.add_row(Text(row.program, style="bold"), *beside, *_cells(outline, row))
    if outline.of_controls.launches[1]:
        empty = [""] * (len(names) if dots else 1)
        partitions = [""] if outline.partitions else []
        table.add_row(Text("controls", style="dim"), *empty, *partitions, "", *_amount(outline.of_controls))
    return table


def _cells(outline: Outline, row: Row) -> list[str]:
    partitions = [str(row.partitions)] if outline.partitions else []
    return [*partitions, " │ ".join(row.cpus), *_amount(row.amount)]


def _amount(amount: Amount) -> list[str]:
    launches = between(*amount.launches, DASH)
    done = f"{amount.measured} of {launches}" if amount.measured else launches
    time = minutes_between(*amount.seconds, DASH) if amount.seconds[1] else "measured"
    return [done, between(*amount.windows, DASH), time]


def _facts(outline: Outline) -> Table:
    """What has to be known besides, a line or two each."""
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, fact in _lines(outline):
        table.add_row(name, Text(fact) if isinstance(fact, str) else fact)
    return table


def _lines(outline: Outline) -> Iterator[tuple[str, RenderableType]]:
    if outline.platform == "modelled":
        yield "Modelled", "Nothing is started: the rates come from a model of a machine."
    if outline.platform == PLATFORM:
        yield "Rehearsed", NO_EFFECT
    if outline.controls:
        pairs = [f"{program} beside {others} {MUST[kind]}" for kind, program, others in outline.controls]
        yield "Controls", ", ".join(pairs)
    if outline.without_own_losses:
        yield "Antagonists", "They are not measured alone: their own losses, STP and ANTT will not be known."
    if outline.without_placebo:
        yield "Placebo", "None: losses are not split into the cost of a busy neighbour and the rest."
    if outline.adaptive:
        yield "Adaptive", outline.adaptive
    if outline.chances.pairs:
        yield "Will it find anything?", "\n".join(chances_words(outline.chances))
    if outline.services:
        yield "Services", "\n".join(outline.services)
    if mixes := on_mixes(outline.notes):
        yield "Mixes", "\n".join(_shown(mixes, outline))
    if outline.partitions or outline.torn or on_partitions(outline.notes):
        yield "Partitions", "\n".join(_partitions(outline))
    if outline.cautions:
        yield "Do they do it here?", "\n".join(outline.cautions)
    if outline.variants:
        yield "Variants", "\n".join(outline.variants)
    if outline.mitigations:
        yield "Mitigations", "\n".join(_mitigations(outline))
    if outline.prediction:
        yield "Prediction", outline.prediction
    if outline.profiles:
        yield "Operations", outline.profiles
    if outline.traces:
        yield "Traces", outline.traces
    if outline.placing:
        yield "Placing jobs", outline.placing
    if outline.missing:
        yield "Missing here", Text("\n".join(outline.missing), style="red")
    if lacking := lacking_words(SWEEP, *([TRACE] if outline.profiles or outline.traces else [])):
        yield "To sweep", Text(lacking, style="red")
    if outline.to_build:
        yield "Before that", f"{listed([BUILT.get(name, f'installing {name}') for name in outline.to_build])}, once"
    if outline.not_here:
        where, doctor = ("that", "") if outline.captured else ("this", "   castmates doctor")
        yield f"Not on {where} machine", Text.assemble(", ".join(outline.not_here), (doctor, "cyan"))


def _mitigations(outline: Outline) -> Iterator[str]:
    """What is tried against the loss of each mix, and what cannot be tried here."""
    for mix in dict.fromkeys(mix for mix, _, _ in outline.mitigations):
        own = [(kind, reason) for name, kind, reason in outline.mitigations if name == mix]
        tried = dict.fromkeys(kind for kind, reason in own if not reason)
        yield f"{mix}: {listed(list(tried)) or 'nothing can be tried here'}"
        yield from (f"not tried: {kind} ({reason})" for kind, reason in own if reason)


def chances_words(chances: Chances) -> Iterator[str]:
    """How small a loss so many launches find: of the worst pair and of the best one where the spreads are known."""
    best = min(chances.known, key=lambda chance: chance.spread_pct)
    worst = max(chances.known, key=lambda chance: chance.spread_pct)
    if chances.assumed:
        head = f"Unknown before the first launches. If launches differ by {percent(best.spread_pct)},"
    else:
        spread = between(percent(best.spread_pct), percent(worst.spread_pct))
        head = f"Launches differ by {spread} ({worst.source}):"
    yield f"{head} {_found(best.launches, best.alone_pct, worst.alone_pct)}."
    if chances.pairs > 1:
        wide = f" ({worst.pair})" if best.pair != worst.pair else ""
        losses = [percent(loss) for loss in worst.among_all_pct]
        yield f"A loss that is the only one among the {chances.pairs} mixes{wide}: {listed(losses)}."


def _found(launches: Sequence[int], best: Sequence[float], worst: Sequence[float]) -> str:
    """2 are too few to find any loss, 5 find a loss of 8.4 %, 12 find 4.4 %."""
    parts, loss = [], "a loss of "
    for count, low, high in zip(launches, best, worst, strict=True):
        if not math.isfinite(low):
            parts.append(f"{count} {'is' if count == 1 else 'are'} too few to find any loss")
            continue
        found = between(percent(low), percent(high)) if math.isfinite(high) else f"{percent(low)} at best"
        parts.append(f"{count} find {loss}{found}")
        loss = ""
    return ", ".join(parts)


def _partitions(outline: Outline) -> Iterator[str]:
    """The names of one kind in a few words, and what was left out."""
    kinds: dict[str, list[str]] = {}
    for name in outline.partitions:
        kinds.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    if kinds:
        yield ", ".join(_kind(names) for names in kinds.values())
    if outline.remembered:
        yield "as they were planned last: the cache cannot be partitioned now (castmates doctor)"
    yield from _shown([*outline.torn, *on_partitions(outline.notes)], outline)


def _shown(notes: Sequence[str], outline: Outline) -> Iterator[str]:
    """The first remarks, and where the others are."""
    yield from notes[:SHOWN]
    if (more := len(notes) - SHOWN) > 0:
        yield f"and {more} more remarks: castmates plan{study_argument(outline.file)} --masks"


def _kind(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= MANY else f"{names[0]} to {names[-1]} ({len(names)})"


def _next(outline: Outline) -> RenderableType:
    study = study_argument(outline.file)
    if outline.total.unusable and not outline.to_measure[1]:
        command = f"castmates sweep{study} --retry"
        why = f"   {outline.total.unusable} launches are unusable, and are measured again"
    else:
        command, why = f"castmates {'sweep' if outline.to_measure[1] else 'show'}{study}", ""
    here = ("Next     ", "bold")
    if outline.captured:  # nothing can be measured there from here
        here, why = ("There    ", "bold"), "   on that machine; nothing of this is measured here"
    masks = " --masks" if outline.partitions or outline.notes else ""
    details = f"--scenes --counters{masks} --all --format json"
    return Group(
        Text.assemble(here, (command, "cyan"), (why, "dim")),
        Text.assemble(("Details  ", "bold"), ("castmates plan", "cyan"), (f" {details}", "dim")),
    )


def chances_table(chances: Chances) -> RenderableType:
    """Pair by pair: by how much launches differ, and what so many of them find."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Smallest loss that is found in four studies of five", overflow="fold")
    for name in ("launches differ by", "known from", "launches", "alone", "among all mixes"):
        table.add_column(name, justify="right", overflow="fold")
    for chance in chances.known:
        for row in _chance_rows(chance):
            table.add_row(*row)
    return Padding(table, (0, 0, 0, 1))


def _chance_rows(chance: Chance) -> Iterator[list[str]]:
    head = [chance.pair or "any mix", percent(chance.spread_pct), chance.source]
    for count, alone, among in zip(chance.launches, chance.alone_pct, chance.among_all_pct, strict=True):
        yield [*head, str(count), percent(alone), percent(among)]
        head = ["", "", ""]


# What `castmates plan` prints on request: scenes and launches, what is counted, and masks in the kernel's words.

NOTHING_NOW = (
    "The last-level cache cannot be partitioned now (resctrl is not mounted, or this user has no groups): the "
    "partitions are those of the last plan. What is measured is kept; `castmates doctor` shows what to change."
)


def scenes(project: Project, planned: Plan, outline: Outline) -> Iterator[RenderableType]:
    """The launches by cohort, the scenes of each, and why they have as many rounds as they have."""
    yield _details_launches(outline)
    for each in outline.cohorts:
        more = f"  and {each.under_partitions} more under partitions" if each.under_partitions else ""
        head = f"\nScenes of {each.cohort}"
        yield Text.assemble((head, "bold"), ", in short slices, in fresh random order every cycle")
        yield Text("  " + "  ".join(each.scenes) + more)
    reasons = list(duration.lines(project, planned))
    yield from map(Text, ["", *reasons] if reasons else [])


def counters(project: Project, plan: Plan) -> Iterator[RenderableType]:
    """What is counted in every window, and what is measured after the rounds."""
    if project.modelled:
        yield Text("Modelled: nothing is started, so nothing is counted.")
        return
    yield Text.assemble(("Counted in every window: ", "bold"), f"{described(project.study.counters)}.")
    if project.study.counters.ranges and not any(one.phases for each in plan.cohorts for one in each.members):
        yield Text("'counters.ranges' keeps nothing: no workload has 'phases: true'.")
    yield Text(profile_launches.after_rounds_line(plan.launches))


def masks(project: Project, plan: Plan) -> Iterator[RenderableType]:
    """Who gets what under each partition, what was left out, and how losses will be divided."""
    yield from map(Text, isolation.remarks(plan))
    parts = list(zip(parts_of(plan), project.by_class, strict=True))
    for part, here in parts:
        for line in isolation.lines(part, here.layout()):
            yield Text(line) if isinstance(line, str) else line
    if not plan.machines and any(mix.partitions for mix in plan.mixes) and project.shareable_cache() != plan.cache:
        yield Text(f"\n{NOTHING_NOW}")
    for part, here in parts:
        if sentence := isolation.line(part, project.study.attribution.isolated):
            yield Text(f"\nOn {here.machine}: {sentence}" if here.machine else f"\n{sentence}")


def _details_launches(outline: Outline) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("cohort", overflow="fold")
    for name in ("launches", "measured", "unusable", "scenes", "rounds", "windows", "to do"):
        table.add_column(name, justify="right", overflow="fold")
    for each in outline.cohorts:
        table.add_row(each.cohort, *_details_cells(each))
    return table


def _details_cells(each: Launched) -> list[str]:
    amount = each.amount
    return [
        between(*amount.launches, DASH),
        str(amount.measured),
        str(amount.unusable),
        str(len(each.scenes) + each.under_partitions),
        ", ".join(map(str, each.rounds)),
        between(*amount.windows, DASH),
        minutes_between(*amount.seconds, DASH) if amount.seconds[1] else "–",
    ]


# Where the mixes of a study sit on a machine.


def places(project: Project) -> Table:
    """CPUs, caches and memory nodes of every member."""
    layout = project.layout()
    cast = project.cast(layout, project.shareable_cache())
    table = Table(box=None, header_style="dim")
    for name in ("mix", "role", "workload", "CPUs", "cache", "memory node"):
        table.add_column(name, overflow="fold")
    everyone = (*cast.mixes, *(control.mix for control in cast.controls))
    mixes = {(mix.lead, mix.antagonists): mix for mix in everyone}  # whatever partitions are tried on them
    for mix in mixes.values():
        for name in (mix.lead, *mix.antagonists):
            member = cast.members[name]
            caches = {cpu.llc for cpu in layout.cpus if cpu.id in member.cpus} - {None}
            table.add_row(
                mix.name if name == mix.lead else "",
                member.role,
                member.workload,
                format_cpu_list(member.cpus),
                format_cpu_list(cache for cache in caches if cache is not None) or "unknown",
                format_cpu_list(member.nodes) or "not bound",
            )
    return table
