"""A launch on a node of a cluster, whose processor may be another one than that of the machine that planned."""

from pathlib import Path

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.files import mapping_if_there
from castmates.study.spec import Launch, Member
from castmates.workloads import environments
from castmates.workloads.native import build as native


def built_for_us(launch: Launch, cache: Path) -> Launch:
    """The launch with our own programs as this processor needs them: they are built for the very one that builds them.

    Their sources have to be those that the launch was planned with.
    """
    planned, ours = launch.cohort.native_key, environments.key(environments.NATIVE, shipped.environments())
    if launch.design.model is not None or ours == planned:
        return launch
    place = environments.place_of(environments.NATIVE, planned, cache)
    if not environments.ready_file(place).is_file():
        return launch  # a launch by hand, without a sweep that builds: it reports what is not built
    if mapping_if_there(environments.ready_file(place)).get("sources") != native.sources():
        raise CastmatesError(
            "the sources of the kernels are no longer those that this launch was planned with; run the same command "
            "again."
        )
    environments.build(environments.NATIVE, shipped.environments(), cache)
    members = tuple(_with_native(member, ours) for member in launch.cohort.members)
    return launch.model_copy(
        update={"cohort": launch.cohort.model_copy(update={"native_key": ours, "members": members})}
    )


def _with_native(member: Member, key: str) -> Member:
    is_native = member.environment == environments.NATIVE
    return member.model_copy(update={"environment_key": key}) if is_native else member
