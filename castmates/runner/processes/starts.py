"""What it takes to start the processes of a launch: its members, placebos and evictors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import mapping_of, understanding
from castmates.runner.processes import placeholders
from castmates.runner.processes.evictor import Evictor
from castmates.runner.processes.launch import Start, clean_environment
from castmates.study.patterns import posix
from castmates.study.spec import Cohort, Member
from castmates.workloads import attaching, environments, inputs

HELPER_READY_WITHIN = 20.0


def starts(cohort: Cohort, scratch: Path, cache: Path, evictors: Sequence[Evictor] = ()) -> list[Start]:
    """Return what to start, the lead first: every member, then a placebo for every CPU that some scene gives to one.

    Last the evictors.
    """
    native = native_programs(cohort, cache)
    members = [member_start(member, native, scratch, cache) for member in cohort.members]
    cpus = sorted({cpu for scene in cohort.scenes for cpu in scene.placebos})
    placebos = [helper_start(placebo_member(cpu), cpu, [str(native / "spin")], scratch) for cpu in cpus]
    return [*members, *placebos, *(_evictor(each, native, scratch) for each in evictors)]


def native_programs(cohort: Cohort, cache: Path) -> Path:
    """Return the folder of our own programs."""
    return _built(environments.NATIVE, cohort.native_key, cache) / "bin"


def environments_used(cohort: Cohort, cache: Path) -> dict[str, object]:
    """Return what the environments report about themselves: versions, and the compiler of the kernels."""
    used = {(environments.NATIVE, cohort.native_key)}
    used |= {
        (member.environment, member.environment_key)
        for member in cohort.members
        if member.environment and member.environment_key
    }
    return {name: _facts(environments.ready_file(_built(name, key, cache))) for name, key in sorted(used)}


def inputs_used(cohort: Cohort, cache: Path) -> dict[str, object]:
    """Return what the data sets report about themselves: how they were made, and a digest of their files."""
    used = {(member.inputs, member.inputs_key) for member in cohort.members if member.inputs and member.inputs_key}
    return {name: _facts(inputs.ready_file(placeholders.built(name, key, cache))) for name, key in sorted(used)}


def _facts(file: Path) -> object:
    with understanding(file, "what a build leaves", f"remove {file.parent} to have it built again"):
        return mapping_of(file)


def placebo_member(cpu: int) -> str:
    """Return the name of the placebo of a CPU; no workload may have a colon in its name."""
    return f"placebo:{cpu}"


def member_start(member: Member, native: Path, scratch: Path, cache: Path) -> Start:
    """Return how to start a member; `native` is the folder of our own programs."""
    prefix: dict[str, str] = {}
    if member.environment is not None and member.environment_key is not None:
        prefix = environments.environment_of(_built(member.environment, member.environment_key, cache))
    command, variables, ours = placeholders.filled(member, scratch, cache)
    keeper = _keeper(member, native)
    environment = clean_environment(variables, member.cpus, scratch, ours | prefix)
    if member.attach:
        environment |= attaching.variables(environment, member.step_function, cache)
    return Start(
        name=member.name,
        cpus=member.cpus,
        nodes=member.nodes,
        command=[*keeper, *command],
        environment=environment,
        ready_within=member.ready_within,
        kept=member.progress == "runs",
        kept_command=tuple(command) if keeper else (),
        package=member.package,
        awaited=_awaited(member),
        phases=member.phases,
        requests=member.requests,
        frozen_between_steps=member.frozen_between_steps,
    )


def _keeper(member: Member, native: Path) -> list[str]:
    """Return who starts the command and reports for it, where it does not report itself."""
    if member.progress == "runs":
        return [str(native / "loop"), "--"]
    if member.progress == "output":
        ready = ["--ready", posix(member.ready_line)] if member.ready_line else []
        return [str(native / "lines"), "--step", posix(member.step_line), *ready, "--"]
    return []


def _awaited(member: Member) -> str:
    """Return what makes a member ready, where it does not report that itself."""
    if member.attach:
        what = f"call of '{member.step_function}'" if member.step_function else "training step of Keras"
        return f"no {what} was seen for long enough"
    if member.progress != "output":
        return ""
    key = "ready_line" if member.ready_line else "step_line"
    return f"no line of its output matched '{key}' ({member.ready_line or member.step_line})"


def _evictor(each: Evictor, native: Path, scratch: Path) -> Start:
    program, *options = each.command
    start = helper_start(each.name, each.cpu, [str(native / program), *options], scratch)
    return replace(start, nodes=(each.node,)) if each.bound and each.node is not None else start


def helper_start(name: str, cpu: int, command: list[str], scratch: Path) -> Start:
    """Return how to start one of our own programs on a CPU."""
    return Start(
        name=name,
        cpus=(cpu,),
        nodes=(),
        command=command,
        environment=clean_environment({}, (cpu,), scratch, {}),
        ready_within=HELPER_READY_WITHIN,
    )


def _built(name: str, key: str, cache: Path) -> Path:
    place = environments.place_of(name, key, cache.resolve())
    if not environments.ready_file(place).is_file():
        raise CastmatesError(
            f"the environment '{name}' is not built yet ({place}); run `castmates internals build-environment "
            f"{name}` first."
        )
    return place
