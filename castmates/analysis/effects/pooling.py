"""Which blocks of a study may be estimated together: those of one class of nodes, of one model of processor."""

from collections.abc import Collection

import pandas as pd

from castmates.study.node_classes import parts_of
from castmates.study.spec import NodeClass, Plan


def pooled(plan: Plan, windows: pd.DataFrame) -> list[Plan]:
    """The parts of a plan that are never pooled: its classes, or without classes the processors that measured it.

    A part that has no class has the model of its processor in the place of one, the most measured first. Blocks of
    which it is not known go with the only processor that is, or with the first.
    """
    if plan.machines:
        return parts_of(plan)
    places = windows.loc[windows["processor"] != "", ["company", "block", "processor"]].drop_duplicates()
    counts = places["processor"].value_counts()
    if len(counts) < 2:
        return [plan]
    models = sorted(map(str, counts.index), key=lambda model: (-int(counts[model]), model))
    model_of = {
        (str(company), int(number)): str(model) for company, number, model in places.itertuples(index=False, name=None)
    }
    return [
        plan.model_copy(
            update={
                "blocks": tuple(
                    block for block in plan.blocks if model_of.get((block.company.id, block.number), models[0]) == model
                ),
                "machines": (NodeClass(name=model, capture="", facts=None, cache=plan.cache),),
            }
        )
        for model in models
    ]


def without_hosts(plan: Plan, windows: pd.DataFrame, hosts: Collection[str]) -> Plan:
    """The plan without the blocks that were measured on these hosts."""
    if not hosts:
        return plan
    theirs = windows.loc[windows["host"].isin(list(hosts)), ["company", "block"]].drop_duplicates()
    gone = {(str(company), int(number)) for company, number in theirs.itertuples(index=False, name=None)}
    blocks = tuple(block for block in plan.blocks if (block.company.id, block.number) not in gone)
    return plan.model_copy(update={"blocks": blocks})
