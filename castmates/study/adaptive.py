"""Launches of an adaptive study: which mixes one measures, by what the looks before it decided."""

from collections.abc import Collection, Sequence

from castmates.study.scenes import scenes_of
from castmates.study.spec import Cohort, Launch, Scene


def skipped_at(cohort: Cohort, measured: Collection[str] | None, later: Collection[str]) -> tuple[str, ...]:
    """Identities of the mixes that a launch leaves out: after a look all that do not go on, before any the later ones.

    `measured` has the mixes that go on after the look before the launch; None before the first look.
    """
    identities = [mix.identity for mix in cohort.mixes]
    if measured is None:
        return tuple(identity for identity in identities if identity in later)
    return tuple(identity for identity in identities if identity not in measured)


def as_launched(launch: Launch) -> Launch:
    """The launch with only what it measures: mixes that are left out take their scenes and members along."""
    if not launch.skipped:
        return launch
    cohort = launch.cohort
    mixes = tuple(mix for mix in cohort.mixes if mix.identity not in launch.skipped)
    playing = {cohort.lead.name, *(name for mix in mixes for name in mix.antagonists)}
    members = tuple(member for member in cohort.members if member.name in playing)
    names = {scene.name for scene in scenes_of(mixes, {member.name: member for member in members})} if mixes else set()
    # In the cohort's order, and with its shares: those of a measured cohort are what was written then.
    scenes = tuple(scene for scene in cohort.scenes if scene.name in names)
    return launch.model_copy(
        update={"cohort": cohort.model_copy(update={"mixes": mixes, "members": members, "scenes": scenes})}
    )


def scenes_measured(launch: Launch) -> Sequence[Scene]:
    """The scenes that a launch measures in each round."""
    return as_launched(launch).cohort.scenes


def look_before(path: str, looks: Sequence[Collection[str]]) -> int:
    """The number of the look that decides what a launch measures; 0 for those of before the first look."""
    return next((number for number, added in enumerate(looks) if path in added), 0)
