"""(study, blocks measured so far) -> plan; a pure function that never takes a measured block back."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from castmates.study.mixes import Cast
from castmates.study.model import Study
from castmates.study.scenes import scenes_of
from castmates.study.schedule import block_seed
from castmates.study.spec import PROTOCOL, Block, Company, Design, Member, Mix, Plan

CONTROL_ROUNDS = 3  # a control has to show something large, or nothing: it needs no more


def extend(
    study: Study, cast: Cast, titles: Mapping[str, str], native_key: str, measured: Iterable[Block] = ()
) -> Plan:
    """Plan what is still missing.

    A measured block counts for each of its mixes that the study still has. A company whose mixes are all still
    wanted goes on; mixes that lost their company, or are new, form companies of their own.
    """
    members = cast.members
    wanted = {mix.identity: mix for mix in (*(control.mix for control in cast.controls), *cast.mixes)}
    only_controls = wanted.keys() - {mix.identity for mix in cast.mixes}
    kept = [block for block in measured if _active(block.company, wanted)]
    blocks = list(kept)
    have = {identity: sum(_has(block.company, identity) for block in kept) for identity in wanted}
    covered: set[str] = set()
    for company in _companies(kept):
        identities = [mix.identity for mix in company.mixes]
        if not all(identity in wanted for identity in identities) or covered & set(identities):
            continue
        missing = study.budget.blocks - min(have[identity] for identity in identities)
        again = _company([wanted[identity] for identity in identities], members, native_key)
        blocks += _new_blocks(study, again, kept, missing, only_controls)
        covered |= set(identities)
    for group, missing in _groups(study, [mix for mix in wanted.values() if mix.identity not in covered], have):
        blocks += _new_blocks(study, _company(group, members, native_key), kept, missing, only_controls)
    blocks.sort(key=lambda block: (block.company.id, block.number))  # one plan, one text: measured or not
    named = {name: titles[name] for name in dict.fromkeys(member.workload for member in members.values())}
    return Plan(
        study=study.name,
        titles=named,
        mixes=tuple(cast.mixes),
        controls=tuple(cast.controls),
        blocks=tuple(blocks),
    )


def active_mixes(plan: Plan, company: Company) -> list[Mix]:
    """The mixes of a company that the study (still) has, its controls included."""
    return _active(company, plan.wanted)


def _active(company: Company, wanted: Mapping[str, Mix]) -> list[Mix]:
    return [mix for mix in company.mixes if mix.identity in wanted] if company.protocol == PROTOCOL else []


def _has(company: Company, identity: str) -> bool:
    return any(mix.identity == identity for mix in company.mixes)


def _companies(blocks: Iterable[Block]) -> list[Company]:
    return list({block.company.id: block.company for block in blocks}.values())


def _groups(study: Study, mixes: Sequence[Mix], have: Mapping[str, int]) -> Iterable[tuple[list[Mix], int]]:
    """Mixes of one lead that miss the same number of blocks share a launch, up to `budget.company` of them."""
    groups: dict[tuple[str, int], list[Mix]] = {}
    for mix in mixes:
        missing = study.budget.blocks - have[mix.identity]
        if missing > 0:
            groups.setdefault((mix.lead, missing), []).append(mix)
    for (_, missing), group in groups.items():
        for start in range(0, len(group), study.budget.company):
            yield group[start : start + study.budget.company], missing


def _company(mixes: Sequence[Mix], members: Mapping[str, Member], native_key: str) -> Company:
    names = dict.fromkeys([mixes[0].lead, *(name for mix in mixes for name in mix.antagonists)])
    digest = hashlib.sha256("\n".join(mix.identity for mix in mixes).encode()).hexdigest()[:8]
    return Company(
        id=f"{members[mixes[0].lead].workload}-{digest}",
        protocol=PROTOCOL,
        native_key=native_key,
        members=tuple(members[name] for name in names),
        mixes=tuple(mixes),
        scenes=scenes_of(mixes, members),
    )


def _new_blocks(
    study: Study, company: Company, kept: Sequence[Block], count: int, only_controls: Collection[str]
) -> list[Block]:
    """Blocks with the lowest numbers that are still free (a gap is left where a block was forgotten)."""
    taken = {block.number for block in kept if block.company.id == company.id}
    is_control = all(mix.identity in only_controls for mix in company.mixes)
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
    budget = study.budget
    return Design(
        rounds=min(budget.rounds, CONTROL_ROUNDS) if is_control else budget.rounds,
        spare_rounds=budget.spare_rounds,
        window=budget.window,
        longest_window=max(budget.longest_window, budget.window),
        settle=budget.settle,
        longest_settle=budget.longest_settle,
        steps=budget.steps,
        limits=study.limits,
    )
