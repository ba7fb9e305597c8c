"""(study, blocks measured so far) -> plan; a pure function that never takes a measured block back."""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from castmates.errors import CastmatesError
from castmates.study.companies import Room, companies
from castmates.study.mixes import Cast
from castmates.study.model import Study
from castmates.study.scenes import scenes_of
from castmates.study.schedule import block_seed
from castmates.study.spec import PROTOCOL, Block, Company, Counting, Design, Member, Mix, Plan, companies_of

CONTROL_ROUNDS = 3  # a control has to show something large, or nothing: it needs no more


def extend(
    study: Study,
    cast: Cast,
    titles: Mapping[str, str],
    native_key: str,
    measured: Iterable[Block] = (),
    room: Room | None = None,
) -> Plan:
    """Plan what is still missing.

    A measured block counts for each of its mixes that the study still has. A company whose mixes are all still
    wanted goes on; mixes that lost their company, or are new, form companies of their own.
    """
    members = cast.members
    wanted = {mix.identity: mix for mix in (*(control.mix for control in cast.controls), *cast.mixes)}
    results = {mix.identity for mix in cast.mixes}
    kept = [block for block in measured if _active(block.company, wanted)]
    having = Counter(mix.identity for block in kept for mix in block.company.mixes)
    blocks = list(kept)
    begun = {}  # company -> how many blocks its mixes have from elsewhere
    covered: set[str] = set()
    for company in companies_of(kept):
        identities = [mix.identity for mix in company.mixes]
        if not all(identity in wanted for identity in identities) or covered & set(identities):
            continue
        own = sum(block.company.id == company.id for block in kept)
        begun[company.id] = min(having[identity] for identity in identities) - own
        again = _company([wanted[identity] for identity in identities], members, native_key)
        blocks += _new_blocks(study, again, kept, _most(study, identities, results) - own - begun[company.id], results)
        covered |= set(identities)
    have = {identity: having[identity] for identity in wanted if identity not in covered}
    for group, missing in _groups(study, wanted, results, have, members, room or Room()):
        new = _company(group, members, native_key)
        begun[new.id] = have[group[0].identity]
        blocks += _new_blocks(study, new, kept, missing, results)
    blocks.sort(key=lambda block: (block.company.id, block.number))  # one plan, one text: measured or not
    named = {name: titles[name] for name in dict.fromkeys(member.workload for member in members.values())}
    return Plan(
        study=study.name,
        titles=named,
        mixes=tuple(cast.mixes),
        controls=tuple(cast.controls),
        blocks=tuple(blocks),
        looks=_looks(study, blocks, begun, results),
        notes=cast.notes,
        cache=cast.cache,
    )


def active_mixes(plan: Plan, company: Company) -> list[Mix]:
    """The mixes of a company that the study (still) has, its controls included."""
    return _active(company, plan.wanted)


def _active(company: Company, wanted: Mapping[str, Mix]) -> list[Mix]:
    return [mix for mix in company.mixes if mix.identity in wanted] if company.protocol == PROTOCOL else []


def _most(study: Study, identities: Iterable[str], results: Collection[str]) -> int:
    """How many blocks these mixes may come to; controls alone never need more than the first look."""
    return study.budget.looks[-1 if any(identity in results for identity in identities) else 0]


def _groups(
    study: Study,
    wanted: Mapping[str, Mix],
    results: Collection[str],
    have: Mapping[str, int],
    members: Mapping[str, Member],
    room: Room,
) -> Iterable[tuple[list[Mix], int]]:
    """Mixes of one lead that miss the same number of blocks share a launch, as far as they fit."""
    groups: dict[tuple[str, int], list[Mix]] = {}
    for identity, had in have.items():
        missing = _most(study, [identity], results) - had
        if missing > 0:
            groups.setdefault((wanted[identity].lead, missing), []).append(wanted[identity])
    for (_, missing), group in groups.items():
        for company in companies(group, members, study.budget, _rounds(study), room):
            yield company, missing


def _looks(
    study: Study, blocks: Iterable[Block], begun: Mapping[str, int], results: Collection[str]
) -> tuple[tuple[str, ...], ...]:
    """Which blocks each look adds: a block belongs to the first one that has as many blocks of its mixes.

    Blocks of companies that do not go on, and those of controls, belong to the first look.
    """
    if study.budget.precision is None:
        return ()
    counts = study.budget.looks
    found: list[list[str]] = [[] for _ in counts]
    rank = Counter(begun)
    for block in blocks:
        rank[block.company.id] += 1
        goes_on = block.company.id in begun and any(mix.identity in results for mix in block.company.mixes)
        place = bisect_left(counts, rank[block.company.id]) if goes_on else 0
        found[min(place, len(counts) - 1)].append(block.path)
    return tuple(map(tuple, found))


def _company(mixes: Sequence[Mix], members: Mapping[str, Member], native_key: str) -> Company:
    names = dict.fromkeys([mixes[0].lead, *(name for mix in mixes for name in mix.antagonists)])
    digest = hashlib.sha256("\n".join(mix.identity for mix in mixes).encode()).hexdigest()[:8]
    return Company(
        id=f"{members[mixes[0].lead].workload}-{digest}",
        protocol=PROTOCOL,
        native_key=native_key,
        # A program may be a lead in one mix and an antagonist, on the same CPUs, in another.
        members=tuple(
            members[name].model_copy(update={"role": "lead" if name == mixes[0].lead else "antagonist"})
            for name in names
        ),
        mixes=tuple(mixes),
        scenes=scenes_of(mixes, members),
    )


def _new_blocks(
    study: Study, company: Company, kept: Sequence[Block], count: int, results: Collection[str]
) -> list[Block]:
    """Blocks with the lowest numbers that are still free (a gap is left where a block was forgotten)."""
    taken = {block.number for block in kept if block.company.id == company.id}
    is_control = not any(mix.identity in results for mix in company.mixes)
    free = [number for number in range(1, len(taken) + max(count, 0) + 1) if number not in taken]
    return [
        Block(
            study=study.name,
            company=company,
            number=number,
            seed=block_seed(study.seed, company.id, number),
            design=design_of(study, is_control),
        )
        for number in free[: max(count, 0)]
    ]


def design_of(study: Study, is_control: bool = False) -> Design:
    """The design that new blocks get; measured ones keep the one they were measured with."""
    budget, rounds = study.budget, _rounds(study)
    return Design(
        rounds=min(rounds, CONTROL_ROUNDS) if is_control else rounds,
        spare_rounds=budget.spare_rounds,
        window=budget.window,
        longest_window=max(budget.longest_window, budget.window),
        settle=budget.settle,
        longest_settle=budget.longest_settle,
        steps=budget.steps,
        limits=study.limits,
        prepare=study.machine.prepare,
        monitor=study.cache.monitor,
        driver=study.cache.driver,
        model=study.model if study.platform == "modelled" else None,
        counters=_counting(study, is_control),
    )


def _counting(study: Study, is_control: bool) -> Counting:
    """What is counted; a modelled machine has no counters, and a control is neither profiled nor asked for costs."""
    if study.platform == "modelled":
        return Counting(series=0.0, cost_pairs=0)
    keys = study.counters
    return Counting(
        events=keys.chosen,
        topdown=keys.topdown,
        how=keys.how,
        series=keys.series,
        profile=0 if is_control else keys.profile,
        cost_pairs=0 if is_control else keys.cost_pairs,
    )


def _rounds(study: Study) -> int:
    """How many rounds a block has; the word `pilot` must have been replaced by what the pilot found."""
    if study.budget.rounds == "pilot":
        raise CastmatesError(f"the study '{study.name}' takes its rounds from a pilot, which has not been measured.")
    return study.budget.rounds
