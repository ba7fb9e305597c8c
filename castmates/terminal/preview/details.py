"""What `castmates plan` prints on request: scenes and launches, what is counted, and masks in the kernel's words."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castmates.project import Project
from castmates.study import after_rounds
from castmates.study.counter_keys import described
from castmates.study.node_classes import parts_of
from castmates.study.spec import Plan
from castmates.terminal.preview import isolation, rounds, schemata
from castmates.terminal.preview.outline import Launched, Outline
from castmates.terminal.preview.words import DASH, between, minutes_between

NOTHING_NOW = (
    "The last-level cache cannot be partitioned now (resctrl is not mounted, or this user has no groups): the "
    "partitions are those of the last plan. What is measured is kept; `castmates doctor` shows what to change."
)


def scenes(project: Project, planned: Plan, outline: Outline) -> Iterator[RenderableType]:
    """The launches by cohort, the scenes of each, and why they have as many rounds as they have."""
    yield _launches(outline)
    for each in outline.cohorts:
        more = f"  and {each.under_partitions} more under partitions" if each.under_partitions else ""
        head = f"\nScenes of {each.cohort}"
        yield Text.assemble((head, "bold"), ", in short slices, in fresh random order every cycle")
        yield Text("  " + "  ".join(each.scenes) + more)
    reasons = list(rounds.lines(project, planned))
    yield from map(Text, ["", *reasons] if reasons else [])


def counters(project: Project, plan: Plan) -> Iterator[RenderableType]:
    """What is counted in every window, and what is measured after the rounds."""
    if project.modelled:
        yield Text("Modelled: nothing is started, so nothing is counted.")
        return
    yield Text.assemble(("Counted in every window: ", "bold"), f"{described(project.study.counters)}.")
    if project.study.counters.ranges and not any(one.phases for each in plan.cohorts for one in each.members):
        yield Text("'counters.ranges' keeps nothing: no workload has 'phases: true'.")
    yield Text(after_rounds.after_rounds_line(plan.launches))


def masks(project: Project, plan: Plan) -> Iterator[RenderableType]:
    """Who gets what under each partition, what was left out, and how losses will be divided."""
    yield from map(Text, schemata.remarks(plan))
    parts = list(zip(parts_of(plan), project.by_class, strict=True))
    for part, here in parts:
        for line in schemata.lines(part, here.layout()):
            yield Text(line) if isinstance(line, str) else line
    if not plan.machines and any(mix.partitions for mix in plan.mixes) and project.shareable_cache() != plan.cache:
        yield Text(f"\n{NOTHING_NOW}")
    for part, here in parts:
        if sentence := isolation.line(part, project.study.attribution.isolated):
            yield Text(f"\nOn {here.machine}: {sentence}" if here.machine else f"\n{sentence}")


def _launches(outline: Outline) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("cohort", overflow="fold")
    for name in ("launches", "measured", "unusable", "scenes", "rounds", "windows", "to do"):
        table.add_column(name, justify="right", overflow="fold")
    for each in outline.cohorts:
        table.add_row(each.cohort, *_cells(each))
    return table


def _cells(each: Launched) -> list[str]:
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
