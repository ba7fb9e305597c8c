"""A pilot of a study: a few blocks of each company, and the design that follows from them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates import project
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.pipeline.lock import hold_sweep_lock
from castmates.project import Project
from castmates.study.model import CONFIRMED_AFTER, Study
from castmates.study.schedule import block_priority
from castmates.study.spec import Block, Plan
from castmates.workloads import environments

if TYPE_CHECKING:
    from castmates.analysis.design.pilot import Cost, Spread

ROUNDS = 4  # of a pilot's block: enough to see how rounds differ
PRECISION = 0.01  # what a study without a wanted precision is told the blocks for
FEWEST_BLOCKS, MOST_BLOCKS = 5, 200  # that are proposed
MORE = f"more than {MOST_BLOCKS}"


def measure(of: Project, blocks: int) -> Plan:
    """Measure what is missing of the pilot; what was measured before is kept, unless it gave nothing."""
    from castmates.measuring import runner_of
    from castmates.pipeline.measure_block import measure_block

    pilot = of_study(of, blocks)
    plan = pilot.plan()
    hold_sweep_lock(pilot.results)
    for name in sorted(_environments(plan.blocks)):
        environments.build(name, project.ENVIRONMENTS, project.cache())
    for block in sorted(plan.blocks, key=lambda one: -block_priority(one.seed, one.number)):
        record = pilot.record(block)
        if not record.is_file() or project.useless(project.read_record(record)):
            measure_block(plan, block.path, record.parent, project.cache(), choose=runner_of)
    return plan


def of_study(of: Project, blocks: int) -> Project:
    """The pilot as a study of its own: the same mixes, few blocks, no controls."""
    budget = of.study.budget.model_copy(
        update={"blocks": blocks, "precision": None, "rounds": ROUNDS, "spare_rounds": 0}
    )
    name = project.pilot_file(of.study).parent.name
    return replace(of, study=of.study.model_copy(update={"name": name, "budget": budget, "controls": None}))


def propose(of: Project, plan: Plan) -> str:
    """Estimate, leave the proposal where `budget.rounds: pilot` finds it, and put it into words."""
    from castmates.analysis.design import pilot
    from castmates.pipeline.estimate_effects import read_windows

    folder = project.pilot_file(of.study).parent
    windows = read_windows([folder / "blocks" / block.path for block in plan.blocks])
    spreads = pilot.spreads(plan, windows)
    records = _records(folder, plan)
    costs = {company: cost for company, found in records.items() if (cost := pilot.cost_of(found))}
    if not spreads or not costs:
        raise CastmatesError(f"no mix has two blocks with valid windows in {folder}; the logs there say why.")
    budget = of.study.budget
    settle = max([budget.settle, *_settles(records.values())])
    rounds = pilot.best_rounds(spreads.values(), costs.values(), budget.longest_block)
    window = pilot.window_for(windows, budget.steps, budget.window, budget.longest_window, settle)
    found = {
        "rounds": rounds,
        "window": window,
        "settle": round(settle, 3),
        "noise_of_a_window": pilot.window_noise(windows),
        "mixes": {identity: asdict(one) for identity, one in spreads.items()},
        "companies": {company: asdict(cost) for company, cost in costs.items()},
    }
    replace_text(project.pilot_file(of.study), json.dumps(found, indent=1) + "\n")
    return _words(of.study, spreads, costs, found)


def known_spreads(study: Study) -> "dict[str, Spread]":
    """What a pilot found, by the mixes' identities; nothing where there was none."""
    from castmates.analysis.design.pilot import Spread

    file = project.pilot_file(study)
    if not file.is_file():
        return {}
    try:
        mixes = json.loads(file.read_bytes())["mixes"]
        return {identity: Spread(**one) for identity, one in mixes.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise CastmatesError(
            f"{file}: this is not what a pilot leaves ({type(problem).__name__}); run `castmates pilot` again."
        ) from None


def _environments(blocks: Iterable[Block]) -> set[str]:
    members = [member for block in blocks for member in block.company.members]
    return {environments.NATIVE, *(member.environment for member in members if member.environment)}


def _records(folder: Path, plan: Plan) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for block in plan.blocks:
        record = project.read_record(folder / "blocks" / block.path / "block.json")
        found.setdefault(block.company.id, []).append(record)
    return found


def _settles(records: Iterable[Sequence[dict[str, Any]]]) -> list[float]:
    """The settle times that the blocks came to."""
    settled = [record.get("settle") for each in records for record in each]
    return [float(one["seconds"]) for one in settled if one]


def _words(study: Study, spreads: "dict[str, Spread]", costs: "dict[str, Cost]", found: dict[str, Any]) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.table import Table

    from castmates.analysis.statistics.power import blocks_for

    rounds, wanted = found["rounds"], study.budget.precision or PRECISION
    needs = [blocks_for(one.of_blocks(rounds), wanted, MOST_BLOCKS, one.log) for one in spreads.values()]
    mixes = Table("mix", box=None, title="Spread of the loss against solo", title_justify="left")
    for name in ("between launches", "between rounds", "blocks"):
        mixes.add_column(name, justify="right")
    for one, need in zip(spreads.values(), needs, strict=True):
        mixes.add_row(one.mix, f"{_sd(one.between)} %", f"{_sd(one.within)} %", f"about {need}" if need else MORE)
    companies = Table("company", box=None, title="Cost", title_justify="left")
    for name in ("launch", "round"):
        companies.add_column(name, justify="right")
    for company, cost in costs.items():
        companies.add_row(company, f"{cost.launch:.1f} s", f"{cost.round:.1f} s")
    text = StringIO()
    console = Console(file=text, width=100, highlight=False, color_system=None)
    console.print(mixes)
    console.print()
    console.print(companies)
    if (noise := found["noise_of_a_window"]) is not None:
        console.print(f"\nNoise of a window: {100 * noise:.2g} %.")
    console.print("\nProposed, to be put into the study:\n\nbudget:")
    console.print(yaml_lines(study, found, needs, wanted), end="", soft_wrap=True)
    return text.getvalue()


def yaml_lines(study: Study, found: dict[str, Any], needs: Sequence[int | None], wanted: float) -> str:
    """The lines to paste; few blocks tell only roughly how many are needed, hence the larger limit."""
    known = [need for need in needs if need is not None]
    about = max(FEWEST_BLOCKS, *known) if len(known) == len(needs) else None
    aim = f"±{100 * wanted:g} % of every lead's time alone"
    told = f"about {about} blocks" if about else f"{MORE} blocks, and so no number is proposed,"
    lines = [f"# {told} for {aim}"]
    if study.budget.precision is None:
        lines += [f"blocks: {about}"] if about else []
    else:
        lines.append(f"precision: {100 * wanted:g}%")
        limit = max(about + about // 2, study.budget.blocks) + CONFIRMED_AFTER if about else None
        lines += [f"most_blocks: {limit}"] if limit else []
    lines += [f"{key}: {found[key]}" for key in ("rounds", "window", "settle")]
    return "".join(f"  {line}\n" for line in lines)


def _sd(variance: float) -> str:
    return f"{100 * variance**0.5:.2g}"
