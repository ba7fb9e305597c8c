"""What is compared with what: a row per company, scene, baseline scene and member."""

from collections.abc import Iterator

import pandas as pd

from castmates.study.scenes import placebo_cpus, placebo_name
from castmates.study.spec import Company, Mix, Plan, Scene
from castmates.tables import Columns, frame

CONTRASTS: Columns = {
    "row": "int64",  # number of the table's row; equal where companies are pooled
    "mix": "str",
    "partition": "str",
    "baseline": "str",  # solo, placebo, alone
    "member": "str",
    "role": "str",
    "lead": "str",
    "antagonists": "str",
    "company": "str",
    "scene": "str",
    "baseline_scene": "str",
}

# What makes two contrasts of different companies the same row.
_ROW = ["mix", "partition", "baseline", "member"]


def mix_contrasts(plan: Plan) -> pd.DataFrame:
    """Every co-run scene of the plan's active mixes against its baselines, in the order of the plan."""
    companies: dict[str, list[tuple[Company, Mix]]] = {}
    for company in _companies(plan):
        for mix in company.mixes:
            companies.setdefault(mix.identity, []).append((company, mix))
    return _numbered(
        contrast
        for mix in plan.mixes
        for company, measured in companies.get(mix.identity, [])
        for scene in company.scenes
        if scene.kind == "corun" and scene.mix == measured.name
        for contrast in _of_scene(mix, company, scene)
    )


def control_contrasts(plan: Plan) -> pd.DataFrame:
    """The second solo of every lead against its first."""
    active = {mix.identity for mix in plan.mixes}
    return _numbered(
        {
            "mix": "",
            "partition": scene.partition,
            "baseline": "solo",
            "member": company.lead.name,
            "role": "lead",
            "lead": workload_of(company.lead.name),
            "antagonists": "",
            "company": company.id,
            "scene": scene.name,
            "baseline_scene": "solo",
        }
        for company in _companies(plan)
        if active & {mix.identity for mix in company.mixes}
        for scene in company.scenes
        if scene.kind == "solo-again"
    )


def workload_of(member: str) -> str:
    """`stream@1` -> `stream`."""
    return member.rpartition("@")[0]


def _companies(plan: Plan) -> list[Company]:
    return list({block.company.id: block.company for block in plan.blocks}.values())


def _of_scene(mix: Mix, company: Company, scene: Scene) -> Iterator[dict[str, str]]:
    members = {member.name: member for member in company.members}
    placebo = placebo_name(placebo_cpus(mix, members))
    baselines = [(mix.lead, "lead", "solo", "solo"), (mix.lead, "lead", "placebo", placebo)]
    baselines += [(name, "antagonist", "alone", f"alone:{name}") for name in mix.antagonists]
    for member, role, baseline, baseline_scene in baselines:
        yield {
            "mix": mix.name,
            "partition": scene.partition,
            "baseline": baseline,
            "member": member,
            "role": role,
            "lead": workload_of(mix.lead),
            "antagonists": "+".join(workload_of(name) for name in mix.antagonists),
            "company": company.id,
            "scene": scene.name,
            "baseline_scene": baseline_scene,
        }


def _numbered(contrasts: Iterator[dict[str, str]]) -> pd.DataFrame:
    rows: dict[tuple[str, ...], int] = {}
    return frame(
        [{"row": rows.setdefault(tuple(one[key] for key in _ROW), len(rows)), **one} for one in contrasts], CONTRASTS
    )
