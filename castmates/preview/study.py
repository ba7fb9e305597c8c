"""What a study comes to, in words and tables, before anything runs."""

from collections import Counter
from collections.abc import Iterable

from castmates.machine.topology import Topology
from castmates.pipeline.take_look import precision_words, take_look
from castmates.preview import detectable, isolation, schemata
from castmates.project import Project, cache, layout_of, read_record, useless
from castmates.study import after_rounds
from castmates.study.companies import launch_guess
from castmates.study.counter_keys import described
from castmates.study.cpus import format_cpu_list
from castmates.study.looks import company_of, needed
from castmates.study.spec import UNMANAGED, Block, Plan
from castmates.workloads.environments import place_of, ready_file

BLOCK_OVERHEAD = 2.0  # start of the runner, writing the tables
MODELLED_WINDOW = 0.02  # of a study in which nothing is started
ANALYSIS = 15.0  # tables, figures, report


def describe(project: Project) -> str:
    """The plan as text for a terminal."""
    from io import StringIO

    from rich.console import Console

    plan = project.plan()
    text = StringIO()
    console = Console(file=text, width=_width(), highlight=False, color_system=None)
    study = project.study
    console.print(f"Study {study.name}: {study.title or study.name} ({project.study_file})\n")
    if project.modelled:
        console.print("Modelled: nothing is started, rates come from a model of a machine.\n")
    else:
        console.print(f"Counted in every window: {described(study.counters)}.\n")
    console.print(_mixes(plan))
    for company in {block.company.id: block.company for block in plan.blocks}.values():
        console.print(f"\nScenes of company {company.id}, in fresh random order every round:")
        without = [scene.name for scene in company.scenes if scene.partition == UNMANAGED]
        more = len(company.scenes) - len(without)
        console.print("  " + "  ".join(without) + (f"  and {more} under partitions, told below" if more else ""))
    for part in schemata.lines(plan, project.layout()):
        console.print(part)
    if any(mix.partitions for mix in plan.mixes) and project.shareable_cache() != plan.cache:
        console.print(
            "\nNothing here shares out the last-level cache now (resctrl is not mounted, or this user has no groups): "
            "the partitions are those of the last plan. What is measured stays; before more is, see `castmates doctor`."
        )
    console.print()
    console.print(_blocks(project, plan))
    if told := after_rounds.line(plan.blocks):
        console.print(told)
    if told := isolation.line(plan, study.attribution.isolated):
        console.print(f"\n{told}")
    for part in detectable.lines(project, plan):
        console.print(part)
    console.print("\n" + _summary(project, plan))
    return text.getvalue()


def describe_places(project: Project, topology: Topology) -> str:
    """Where the mixes would sit on that machine, as text for a terminal."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table

    layout = layout_of(topology)
    cast = project.cast(layout)
    table = Table("mix", "role", "workload", "CPUs", "cache", "memory node", box=None)
    mixes = {mix.identity: mix for mix in (*cast.mixes, *(control.mix for control in cast.controls))}
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
    text = StringIO()
    Console(file=text, width=_width(), highlight=False, color_system=None).print(table)
    return text.getvalue()


def _width() -> int:
    import shutil

    return max(80, min(shutil.get_terminal_size().columns, 140))


def _mixes(plan: Plan) -> object:
    from rich.table import Table

    table = Table("mix", "lead on CPUs", "antagonists on CPUs", title="Mixes", title_justify="left", box=None)
    tried = Counter((mix.name, mix.lead) for mix in plan.mixes for _ in mix.partitions)
    if tried:
        table.add_column("partitions", justify="right")
    # A mix is told once: each of its partitions is a mix of its own with its name.
    labels = {(mix.name, mix.lead, mix.antagonists): mix.name for mix in plan.mixes}
    for control in plan.controls:
        mix = control.mix
        labels[mix.name, mix.lead, mix.antagonists] = f"{mix.name} ({control.kind} control)"
    for (name, lead, antagonists), label in labels.items():
        partitions = [str(tried[name, lead])] if tried else []
        table.add_row(label, lead.replace("@", " @ "), ", ".join(antagonists).replace("@", " @ "), *partitions)
    return table


def _blocks(project: Project, plan: Plan) -> object:
    from rich.table import Table

    table = Table(title="Blocks", title_justify="left", box=None)
    for name in ("company", "blocks", "measured", "of no use", "scenes", "rounds", "windows", "to do"):
        table.add_column(name, justify="left" if name == "company" else "right", overflow="fold")
    for company, blocks in _by_company(plan).items():
        missing = [block for block in blocks if not measured(project, block)]
        first = sum(company_of(path) == company for path in plan.looks[0]) if plan.looks else 0
        rounds = Counter(block.design.rounds for block in blocks)
        scenes = len(blocks[0].company.scenes)
        table.add_row(
            company,
            str(len(blocks)) if first in (0, len(blocks)) else f"{first} to {len(blocks)}",
            str(len(blocks) - len(missing)),
            str(len(_of_no_use(project, blocks))),
            str(scenes),
            ", ".join(map(str, sorted(rounds))),
            str(sum(scenes * block.design.rounds for block in blocks)),
            minutes(sum(duration(project, block) for block in missing)),
        )
    return table


def _summary(project: Project, plan: Plan) -> str:
    next_ones, last_ones = still_to_measure(project, plan)
    useless = len(_of_no_use(project, plan.blocks))
    again = f" {useless} blocks failed or have no clean round; `castmates retry` forgets them." if useless else ""
    if not last_ones:
        precision = precision_words(plan, project.results, project.study.budget.precision)
        return " ".join(filter(None, [f"Everything is measured.{again}", precision]))
    counts, times = f"{len(last_ones)} block{'s' * (len(last_ones) > 1)}", minutes(_seconds(project, last_ones))
    if len(next_ones) < len(last_ones):
        counts = f"From {len(next_ones)} to {counts}"
        times = f"{minutes(_seconds(project, next_ones))} to {times}"
    wanted = {
        (member.environment, member.environment_key)
        for block in last_ones
        for member in block.company.members
        if member.environment and member.environment_key
    }
    unbuilt = sorted(name for name, key in wanted if not ready_file(place_of(name, key, cache())).is_file())
    setup = f" Before that, these environments are built: {', '.join(unbuilt)}." if unbuilt else ""
    return f"{counts} to measure, about {times}.{setup}{again}"


def still_to_measure(project: Project, plan: Plan) -> tuple[list[Block], list[Block]]:
    """The blocks to come, at least and at most: a wanted precision decides on the way how many."""
    missing = [block for block in plan.blocks if not measured(project, block)]
    if not plan.looks or not missing:
        return missing, missing
    decisions: list[list[str]] = []
    for _ in plan.looks:
        paths = needed(plan, decisions)
        if at_least := [block for block in missing if block.path in paths]:
            later = {path for added in plan.looks[len(decisions) + 1 :] for path in added}
            open_ = {path for path in later if not decisions or company_of(path) in decisions[-1]}
            return at_least, [block for block in missing if block.path in {*paths, *open_}]
        reached = take_look(plan, project.results, project.study.budget.precision or 0.0, decisions)
        decisions.append([one.company for one in reached if one.goes_on])
        if not decisions[-1]:
            break
    return [], []


def _seconds(project: Project, blocks: Iterable[Block]) -> float:
    return sum(duration(project, block) for block in blocks) + ANALYSIS


def duration(project: Project, block: Block) -> float:
    """Seconds a block is expected to take: its launch (as measured before, where it was) and its windows."""
    design = block.design
    windows = design.rounds * len(block.company.scenes)
    if design.model is not None:
        return BLOCK_OVERHEAD + MODELLED_WINDOW * windows
    rounds = windows * (design.settle + 1.1 * design.window)
    return BLOCK_OVERHEAD + _launch(project, block) + rounds + after_rounds.seconds(block)


def measured(project: Project, block: Block) -> bool:
    """Whether the block's outputs are there."""
    return project.record(block).is_file()


def minutes(seconds: float) -> str:
    """A duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _launch(project: Project, block: Block) -> float:
    files = sorted(project.results.glob(f"blocks/{block.company.id}/*/block.json"))[:5]
    seen = [seconds for file in files if (seconds := read_record(file)["seconds"]["launch"]) is not None]
    if seen:
        return float(sum(seen) / len(seen))
    return launch_guess(block.company.members)


def _of_no_use(project: Project, blocks: Iterable[Block]) -> list[Block]:
    return [block for block in blocks if measured(project, block) and useless(read_record(project.record(block)))]


def _by_company(plan: Plan) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for block in plan.blocks:
        found.setdefault(block.company.id, []).append(block)
    return found
