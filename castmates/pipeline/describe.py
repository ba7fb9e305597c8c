"""Facts of a machine -> machine.json of a study, and the files of further nodes beside it."""

import json
from collections.abc import Callable
from typing import Any

from castmates.errors import CastmatesError
from castmates.files import mapping_if_there, replace_text
from castmates.linux.owner import boot_id
from castmates.results.folder import StudyFolder
from castmates.study.spec import Plan


def note_node(folder: StudyFolder, node: str, read_facts: Callable[[], dict[str, Any]]) -> None:
    """Keep the facts of this node once for each of its starts, where the study's machine is another one."""
    file = folder.node_file(node)
    planned, known = mapping_if_there(folder.machine_file), mapping_if_there(file)
    if planned.get("hostname") not in (None, node) and known.get("boot_id") != boot_id():
        replace_text(file, text_of(read_facts()))


def text_of(facts: dict[str, Any]) -> str:
    """The facts as a file has them."""
    return json.dumps(facts, indent=1, sort_keys=True) + "\n"


# One mix of a plan, resolved to CPUs, partitions and command lines.


def describe(plan: Plan, name: str) -> dict[str, object]:
    """The mix, its members, and the scenes and cohorts that measure it."""
    same = [mix for mix in plan.mixes if mix.name == name]  # each of its partitions is a mix too
    if not same:
        raise CastmatesError(f"the plan of the study '{plan.study}' has no mix '{name}'.")
    mix = same[0]
    ours = {each.identity for each in same}  # a cohort may measure it by another name, of the same place
    cohorts = [cohort for cohort in plan.cohorts if ours & {each.identity for each in cohort.mixes}]
    members = {member.name: member for cohort in cohorts for member in cohort.members}
    return mix.model_dump(mode="json") | {
        "members": [members[member].model_dump(mode="json") for member in (mix.lead, *mix.antagonists)],
        "partitions": [partition.model_dump(mode="json") for each in same for partition in each.partitions],
        "cohorts": sorted(cohort.id for cohort in cohorts),
    }
