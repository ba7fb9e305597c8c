"""What a study will be able to find: the smallest slowdown that its blocks mostly show."""

import math
from collections.abc import Iterator, Mapping
from statistics import harmonic_mean

from castmates.project import Project
from castmates.results.block_tables import read_windows
from castmates.results.pilots import read_spreads
from castmates.study.spec import Mix, Plan

FEWEST_BLOCKS = 3  # measured ones, before they count for more than a pilot
EXAMPLE = 0.01


def lines(project: Project, plan: Plan) -> Iterator[object]:
    """A table and a sentence for a terminal; or what would hold for an example where no variance is known."""
    from castmates.analysis.statistics.power import detectable

    variances = known_variances(project, plan)
    # Partitions are compared on the same blocks, in tests of their own: this is about the mixes.
    plain = [mix for mix in plan.mixes if not mix.partitions]
    if not plain:
        return
    known = [mix for mix in plain if mix.identity in variances]
    if not known:
        few, many = min(_blocks(plan, mix)[0] for mix in plain), max(_blocks(plan, mix)[1] for mix in plain)
        counts = [few, many] if many > few else [few]
        examples = " and ".join(f"{_percent(detectable(EXAMPLE**2, count))} with {count} blocks" for count in counts)
        yield (
            "\nThe smallest slowdown that it finds is not known before the first blocks or a pilot "
            f"(`castmates pilot`); with a launch-to-launch spread of {100 * EXAMPLE:g} % it would be {examples}."
        )
        return
    yield ""
    yield _table(plan, known, variances)
    matrix = len(plain)
    if matrix > 1:
        worst = max(detectable(variances[mix.identity][0], _blocks(plan, mix)[0], 0.05 / matrix) for mix in known)
        yield (
            f"Verdicts are Holm-adjusted over the {matrix} effects against solo: a loss that is alone among them has "
            f"to be larger, at most {_percent(worst)}."
        )


def known_variances(project: Project, plan: Plan) -> dict[str, tuple[float, str]]:
    """The variance of block means by the mix's identity, with its source: the study's own blocks, or else a pilot."""
    from castmates.analysis.design.pilot import Spread, spreads

    pilot = read_spreads(project.study, Spread)
    rounds = _rounds(plan)
    variances = {
        identity: (spread.of_blocks(rounds[identity]), f"{spread.blocks} blocks of the pilot")
        for identity, spread in pilot.items()
        if identity in rounds
    }
    measured = project.results.measured(plan)
    if measured.blocks:
        own = spreads(measured, read_windows(project.results.places(measured)))
        had = _rounds(measured)
        variances |= {
            identity: (spread.foreseen(rounds[identity], had[identity]), f"{spread.blocks} blocks of its own")
            for identity, spread in own.items()
            if spread.blocks >= FEWEST_BLOCKS
        }
    return variances


def _rounds(plan: Plan) -> dict[str, float]:
    """The harmonic mean of the rounds of each mix's blocks: with it the variance of their means is as on average."""
    numbers: dict[str, list[int]] = {}
    for block in plan.blocks:
        for mix in block.company.mixes:
            numbers.setdefault(mix.identity, []).append(block.design.rounds)
    return {identity: harmonic_mean(each) for identity, each in numbers.items()}


def _table(plan: Plan, known: list[Mix], variances: Mapping[str, tuple[float, str]]) -> object:
    from rich.table import Table

    from castmates.analysis.statistics.power import detectable

    title = "Smallest slowdown against solo that is found in four studies of five (5 %, two-sided)"
    table = Table("mix", title=title, title_justify="left", box=None)
    for name in ("spread of blocks", "known from", "blocks", "finds"):
        table.add_column(name, justify="right")
    for mix in known:
        variance, source = variances[mix.identity]
        few, many = _blocks(plan, mix)
        counts = [few, many] if many > few else [few]
        table.add_row(
            mix.name,
            _percent(math.sqrt(variance)),
            source,
            " to ".join(map(str, counts)),
            " to ".join(_percent(detectable(variance, count)) for count in counts),
        )
    return table


def _blocks(plan: Plan, mix: Mix) -> tuple[int, int]:
    """How many blocks of the plan have this mix, at least and at most."""
    ours = [block.path for block in plan.blocks if any(each.identity == mix.identity for each in block.company.mixes)]
    return (len(set(ours) & set(plan.looks[0])) if plan.looks else len(ours)), len(ours)


def _percent(log: float) -> str:
    """A loss on the log scale in per cent of slowdown; three blocks are the fewest that find anything."""
    return f"{100 * math.expm1(log):.2g} %" if math.isfinite(log) else "nothing (fewer than three)"
