"""Groups of jobs -> the study that measures them afresh: each group is a mix around one last-level cache.

The first job of a group is the lead, and all others are its antagonists; a mix shows the losses of all of them. Groups
whose members have separate ways are a study each, because the partitions of a study are tried on all of its mixes.
"""

import hashlib
import json
from collections.abc import Sequence

from castmates.errors import CastmatesError
from castmates.study.cache_keys import RecommendKeys, Sweep
from castmates.study.confirmation import FEWEST_LAUNCHES, LONGEST_NAME
from castmates.study.mix_keys import ArrangedMix
from castmates.study.model import Placement, Study
from castmates.study.place_keys import PlaceKeys

SWEEP = "place"  # what the partition of such a study is called
Together = tuple[tuple[str, ...], tuple[int, ...]]  # the members of a group, and the mask of each; () for none


def group_study_name(study: str, groups: Sequence[Together], machine: str = "") -> str:
    """What the study of these groups is called; other groups are another study."""
    text = json.dumps([machine, sorted([list(members), list(masks)] for members, masks in groups)])
    tail = f"-place-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return study[: LONGEST_NAME - len(tail)] + tail


def studies_of(groups: Sequence[Together]) -> list[list[Together]]:
    """The groups by the studies that measure them; a job that is alone loses nothing, and is not measured."""
    several = [group for group in dict.fromkeys(groups) if len(group[0]) > 1]
    together = [group for group in several if not group[1]]
    return [*([together] if together else []), *([group] for group in several if group[1])]


def group_study(study: Study, groups: Sequence[Together], launches: int, machine: str = "") -> Study:
    """The study that measures these groups."""
    if launches < FEWEST_LAUNCHES:
        raise CastmatesError(f"{launches} launches cannot confirm anything; ask for at least {FEWEST_LAUNCHES}.")
    name, fields = group_study_name(study.name, groups, machine), type(study).model_fields
    masks = [_sweep(*group) for group in groups if group[1]]
    return study.model_copy(
        update={
            "name": name,
            "title": f"{study.title or study.name}: groups of jobs, measured afresh",
            "question": f"Do these jobs lose beside each other what the study {study.name} led to expect?",
            "machines": {each: keys for each, keys in study.machines.items() if each == machine},
            "leads": [],
            "antagonists": [],
            "mixes": [ArrangedMix(lead=lead, antagonists=list(others)) for (lead, *others), _ in groups],
            "mitigations": [],
            "placement": _around_one_cache(study.placement),
            "budget": study.budget.without_looks(launches, antagonists_alone=True),  # the losses of all
            "cache": study.cache.model_copy(update={"sweeps": masks, "only": []}),
            "attribution": fields["attribution"].get_default(call_default_factory=True),
            "recommend": RecommendKeys(),
            "place": PlaceKeys(),
            "predict": None,
            "variants": {},
            "trace": None,
            "profile": None,  # losses alone are compared
            "findings": fields["findings"].get_default(call_default_factory=True),
            "controls": None,
            "seed": int(hashlib.sha256(f"{study.seed}/{name}".encode()).hexdigest()[:7], 16),
        }
    )


def _around_one_cache(placement: Placement) -> Placement:
    """All members of a mix around one last-level cache, wherever that is: groups may be larger than the mixes were."""
    return placement.model_copy(update={"lead": None, "antagonists": None, "llc": "shared"})


def _sweep(members: Sequence[str], masks: Sequence[int]) -> Sweep:
    """The masks of one group, as a study has them: by role, or by workload where the others differ from each other."""
    lead, *others = members
    if len(others) > 1 and len({lead, *others}) < len(members):
        raise CastmatesError(
            f"{' and '.join(members)} cannot be measured under separate ways: a study gives masks by role and by "
            "workload, and not to each of several jobs of one workload; write `masks: false`."
        )
    names = ["lead", "antagonists"] if len(others) == 1 else ["lead", *others]
    written = {name: f"0x{mask:x}" for name, mask in zip(names, masks, strict=True)}
    return Sweep.model_validate({"name": SWEEP, "masks": written})
