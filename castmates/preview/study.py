"""What a study comes to, in words and tables, before anything runs."""

from collections import Counter
from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.table import Table

from castmates.files import cache_folder
from castmates.preview import detectable, isolation, rounds, schemata
from castmates.preview.duration import seconds_of_block, seconds_of_sweep, still_to_measure
from castmates.preview.terminal import minutes, width
from castmates.project import Project
from castmates.results.folder import StudyFolder
from castmates.results.looks import precision_words
from castmates.results.records import read_record, useless
from castmates.study import after_rounds
from castmates.study.counter_keys import described
from castmates.study.looks import company_of
from castmates.study.spec import UNMANAGED, Block, Plan
from castmates.workloads.environments import place_of, ready_file


def describe(project: Project) -> str:
    """The plan as text for a terminal."""
    planned = project.plan()
    plan = rounds.expected(project, planned)
    text = StringIO()
    console = Console(file=text, width=width(), highlight=False, color_system=None)
    study = project.study
    console.print(f"Study {study.name}: {study.title or study.name} ({project.study_file})\n")
    if project.modelled:
        console.print("Modelled: nothing is started, rates come from a model of a machine.\n")
    else:
        console.print(f"Counted in every window: {described(study.counters)}.\n")
    console.print(_mixes(plan))
    for company in plan.companies:
        console.print(f"\nScenes of company {company.id}, in short slices, in fresh random order every cycle:")
        without = [scene.name for scene in company.scenes if scene.partition == UNMANAGED]
        more = len(company.scenes) - len(without)
        console.print("  " + "  ".join(without) + (f"  and {more} under partitions, listed below" if more else ""))
    for part in schemata.lines(plan, project.layout()):
        console.print(part)
    if any(mix.partitions for mix in plan.mixes) and project.shareable_cache() != plan.cache:
        console.print(
            "\nNothing here shares out the last-level cache now (resctrl is not mounted, or this user has no groups): "
            "the partitions are those of the last plan. What is measured stays; before more is, see `castmates doctor`."
        )
    console.print()
    console.print(_blocks(project.results, plan))
    for sentence in rounds.lines(project, planned):
        console.print(sentence)
    if sentence := after_rounds.line(plan.blocks):
        console.print(sentence)
    if sentence := isolation.line(plan, study.attribution.isolated):
        console.print(f"\n{sentence}")
    for part in detectable.lines(project, plan):
        console.print(part)
    console.print("\n" + _summary(project, plan))
    return text.getvalue()


def _mixes(plan: Plan) -> Table:
    table = Table("mix", "lead on CPUs", "antagonists on CPUs", title="Mixes", title_justify="left", box=None)
    tried = Counter((mix.name, mix.lead) for mix in plan.mixes for _ in mix.partitions)
    if tried:
        table.add_column("partitions", justify="right")
    # A mix is listed once: its partitions are mixes with the same name.
    labels = {(mix.name, mix.lead, mix.antagonists): mix.name for mix in plan.mixes}
    for control in plan.controls:
        mix = control.mix
        labels[mix.name, mix.lead, mix.antagonists] = f"{mix.name} ({control.kind} control)"
    for (name, lead, antagonists), label in labels.items():
        partitions = [str(tried[name, lead])] if tried else []
        table.add_row(label, lead.replace("@", " @ "), ", ".join(antagonists).replace("@", " @ "), *partitions)
    return table


def _blocks(folder: StudyFolder, plan: Plan) -> Table:
    table = Table(title="Blocks", title_justify="left", box=None)
    for name in ("company", "blocks", "measured", "of no use", "scenes", "rounds", "windows", "to do"):
        table.add_column(name, justify="left" if name == "company" else "right", overflow="fold")
    for company, blocks in _by_company(plan).items():
        missing = [block for block in blocks if not folder.record_file(block).is_file()]
        first = sum(company_of(path) == company for path in plan.looks[0]) if plan.looks else 0
        numbers = {block.design.rounds for block in blocks}
        scenes = len(blocks[0].company.scenes)
        table.add_row(
            company,
            str(len(blocks)) if first in (0, len(blocks)) else f"{first} to {len(blocks)}",
            str(len(blocks) - len(missing)),
            str(len(_of_no_use(folder, blocks))),
            str(scenes),
            ", ".join(map(str, sorted(numbers))),
            str(sum(scenes * block.design.rounds for block in blocks)),
            minutes(sum(seconds_of_block(folder, block) for block in missing)),
        )
    return table


def _summary(project: Project, plan: Plan) -> str:
    folder = project.results
    at_least, at_most = still_to_measure(project, plan)
    no_use = len(_of_no_use(folder, plan.blocks))
    again = f" {no_use} blocks failed or have no clean round; `castmates retry` forgets them." if no_use else ""
    if not at_most:
        precision = precision_words(plan, folder, project.study.budget.precision)
        return " ".join(filter(None, [f"Everything is measured.{again}", precision]))
    counts, times = f"{len(at_most)} block{'s' * (len(at_most) > 1)}", minutes(seconds_of_sweep(folder, at_most))
    if len(at_least) < len(at_most):
        counts = f"From {len(at_least)} to {counts}"
        times = f"{minutes(seconds_of_sweep(folder, at_least))} to {times}"
    wanted = {
        (member.environment, member.environment_key)
        for block in at_most
        for member in block.company.members
        if member.environment and member.environment_key
    }
    unbuilt = sorted(name for name, key in wanted if not ready_file(place_of(name, key, cache_folder())).is_file())
    setup = f" Before that, these environments are built: {', '.join(unbuilt)}." if unbuilt else ""
    return f"{counts} to measure, about {times}.{setup}{again}"


def _of_no_use(folder: StudyFolder, blocks: Iterable[Block]) -> list[Block]:
    """The blocks that are measured and give the analysis little or nothing."""
    files = ((block, folder.record_file(block)) for block in blocks)
    return [block for block, file in files if file.is_file() and useless(read_record(file))]


def _by_company(plan: Plan) -> dict[str, list[Block]]:
    blocks: dict[str, list[Block]] = {}
    for block in plan.blocks:
        blocks.setdefault(block.company.id, []).append(block)
    return blocks
