"""What a study comes to, in words and tables, before anything runs."""

from collections import Counter
from collections.abc import Iterable

from castmates.project import Project, cache, read_record, useless
from castmates.study.spec import Block, Plan
from castmates.workloads.environments import place_of, ready_file

# Guesses of a launch until one was measured, in seconds: a Model Garden job imports and traces for some ten seconds.
LAUNCH_GUESS = {"native": 1.0, None: 1.0}
SLOW_LAUNCH_GUESS = 15.0
BLOCK_OVERHEAD = 2.0  # start of the runner, writing the tables
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
    console.print(_mixes(plan))
    for company in {block.company.id: block.company for block in plan.blocks}.values():
        console.print(f"\nScenes of company {company.id}, in fresh random order every round:")
        console.print("  " + "  ".join(scene.name for scene in company.scenes))
    console.print()
    console.print(_blocks(project, plan))
    console.print("\n" + _summary(project, plan))
    return text.getvalue()


def _width() -> int:
    import shutil

    return max(80, min(shutil.get_terminal_size().columns, 140))


def _mixes(plan: Plan) -> object:
    from rich.table import Table

    table = Table("mix", "lead on CPUs", "antagonists on CPUs", title="Mixes", title_justify="left", box=None)
    for mix in plan.mixes:
        table.add_row(mix.name, mix.lead.replace("@", " @ "), ", ".join(mix.antagonists).replace("@", " @ "))
    return table


def _blocks(project: Project, plan: Plan) -> object:
    from rich.table import Table

    table = Table(title="Blocks", title_justify="left", box=None)
    for name in ("company", "blocks", "measured", "of no use", "scenes", "rounds", "windows", "to do"):
        table.add_column(name, justify="left" if name == "company" else "right")
    for company, blocks in _by_company(plan).items():
        missing = [block for block in blocks if not measured(project, block)]
        rounds = Counter(block.design.rounds for block in blocks)
        scenes = len(blocks[0].company.scenes)
        table.add_row(
            company,
            str(len(blocks)),
            str(len(blocks) - len(missing)),
            str(len(_of_no_use(project, blocks))),
            str(scenes),
            ", ".join(map(str, sorted(rounds))),
            str(sum(scenes * block.design.rounds for block in blocks)),
            minutes(sum(duration(project, block) for block in missing)),
        )
    return table


def _summary(project: Project, plan: Plan) -> str:
    missing = [block for block in plan.blocks if not measured(project, block)]
    useless = len(_of_no_use(project, plan.blocks))
    again = f" {useless} blocks failed or have no clean round; `castmates retry` forgets them." if useless else ""
    if not missing:
        return f"Everything is measured.{again}"
    seconds = sum(duration(project, block) for block in missing) + ANALYSIS
    wanted = {
        (member.environment, member.environment_key)
        for block in missing
        for member in block.company.members
        if member.environment and member.environment_key
    }
    unbuilt = sorted(name for name, key in wanted if not ready_file(place_of(name, key, cache())).is_file())
    setup = f" Before that, these environments are built: {', '.join(unbuilt)}." if unbuilt else ""
    return f"{len(missing)} blocks to measure, about {minutes(seconds)}.{setup}{again}"


def duration(project: Project, block: Block) -> float:
    """Seconds a block is expected to take: its launch (as measured before, where it was) and its windows."""
    design = block.design
    windows = design.rounds * len(block.company.scenes) * (design.settle + 1.1 * design.window)
    return BLOCK_OVERHEAD + _launch(project, block) + windows


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
    return max(LAUNCH_GUESS.get(member.environment, SLOW_LAUNCH_GUESS) for member in block.company.members)


def _of_no_use(project: Project, blocks: Iterable[Block]) -> list[Block]:
    return [block for block in blocks if measured(project, block) and useless(read_record(project.record(block)))]


def _by_company(plan: Plan) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for block in plan.blocks:
        found.setdefault(block.company.id, []).append(block)
    return found
