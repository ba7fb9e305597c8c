"""What is compared with what: a row per company, scene, baseline scene and member."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

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
    "control": "str",  # "" for an effect
}

# What makes two contrasts of different companies the same row.
_ROW = ["mix", "partition", "baseline", "member", "control"]

AGAIN, POSITIVE, NEGATIVE = "A/A", "positive", "negative"
# Beside a placebo a busy neighbour's turbo and power are spent either way; against solo even compute may rightly lose.
_CONTROL_BASELINES = {POSITIVE: "solo", NEGATIVE: "placebo"}


def mix_contrasts(plan: Plan) -> pd.DataFrame:
    """Every co-run scene of the plan's active mixes against its baselines, in the order of the plan."""
    companies = _companies_of_mixes(plan)
    return _numbered(contrast for mix in plan.mixes for contrast in _of_mix(mix, companies))


def control_contrasts(plan: Plan) -> pd.DataFrame:
    """The second solo of every lead against its first, the study's own leads first; then the study's controls."""
    ours = own_leads(plan)
    companies = sorted(_companies(plan), key=lambda company: company.lead.name not in ours)
    of_mixes = _companies_of_mixes(plan)
    known = (
        {**contrast, "control": control.kind}
        for control in plan.controls
        for contrast in _of_mix(control.mix, of_mixes)
        if contrast["role"] == "lead" and contrast["baseline"] == _CONTROL_BASELINES[control.kind]
    )
    return _numbered(chain(_again(plan, companies), known))


def own_leads(plan: Plan) -> set[str]:
    """The members that the study is about; other leads play only in its controls."""
    return {mix.lead for mix in plan.mixes}


def workload_of(member: str) -> str:
    """`stream@1` -> `stream`."""
    return member.rpartition("@")[0]


def _companies(plan: Plan) -> list[Company]:
    return list({block.company.id: block.company for block in plan.blocks}.values())


def _companies_of_mixes(plan: Plan) -> dict[str, list[tuple[Company, str]]]:
    """By identity: the companies that have a mix, and the name it goes by there."""
    found: dict[str, list[tuple[Company, str]]] = {}
    for company in _companies(plan):
        for mix in company.mixes:
            found.setdefault(mix.identity, []).append((company, mix.name))
    return found


def _of_mix(mix: Mix, companies: Mapping[str, list[tuple[Company, str]]]) -> Iterator[dict[str, str]]:
    """Every co-run scene of this mix, in all companies that have it."""
    for company, name in companies.get(mix.identity, []):
        for scene in company.scenes:
            if scene.kind == "corun" and scene.mix == name:
                yield from _of_scene(mix, company, scene)


def _again(plan: Plan, companies: Iterable[Company]) -> Iterator[dict[str, str]]:
    for company in companies:
        for scene in company.scenes:
            if scene.kind == "solo-again" and any(mix.identity in plan.wanted for mix in company.mixes):
                yield {
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
                    "control": AGAIN,
                }


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
            "control": "",
        }


def _numbered(contrasts: Iterable[dict[str, str]]) -> pd.DataFrame:
    rows: dict[tuple[str, ...], int] = {}
    return frame(
        [{"row": rows.setdefault(tuple(one[key] for key in _ROW), len(rows)), **one} for one in contrasts], CONTRASTS
    )
