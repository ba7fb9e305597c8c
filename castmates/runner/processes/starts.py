"""What it takes to start the processes of a launch: its members, placebos and evictors."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import mapping_of, understanding
from castmates.linux import probe_points
from castmates.linux.memory_binding import page_counts
from castmates.runner.processes.launch import Start, WorkloadFailed, clean_environment
from castmates.study.spec import Cohort, Member
from castmates.study.written import posix
from castmates.workloads import environments, inputs
from castmates.workloads.heartbeat import VARIABLE
from castmates.workloads.native.build import BARRIERS, BARRIERS_VARIABLE, CONTROLS, KEEPERS, KERNELS

# A process that fills one part of a last-level cache, so that nothing of anybody else is left there.


@dataclass(frozen=True, slots=True)
class Evictor:
    """Where it runs, and how much it writes."""

    cpu: int
    bytes: int  # in a pass, and in its memory
    node: int | None = None  # whose part of a divided cache it fills
    bound: bool = False  # its memory must be bound to that node, because its CPU lies on another one

    @property
    def name(self) -> str:
        """Its name on the stage; no workload may have a colon in its name."""
        return f"evictor:{self.cpu}" + ("" if self.node is None else f":node{self.node}")

    @property
    def command(self) -> list[str]:
        """What runs there: it writes, because a processor need not keep lines in the cache that were only read."""
        return ["stream", "--mode", "write", "--bytes", str(self.bytes)]


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
    return {name: _facts(inputs.ready_file(built(name, key, cache))) for name, key in sorted(used)}


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
    command, variables, ours = filled(member, scratch, cache)
    environment = clean_environment(variables, member.cpus, scratch, ours | prefix)
    keeper = _keeper(member, native, environment["PATH"])
    if member.progress == "barriers":
        library, also = str(native / f"{BARRIERS}.so"), environment.get("LD_PRELOAD", "")
        if re.search(r"[\s:]", library):
            raise CastmatesError(f"{library} cannot be preloaded: its path must have no blank and no colon in it.")
        environment["LD_PRELOAD"] = ":".join(filter(None, (library, also)))
    if member.attach:
        environment |= environments.variables(environment, member.step_function, cache, member.attach)
    return Start(
        name=member.name,
        cpus=member.cpus,
        nodes=member.nodes,
        command=[*keeper, *command],
        environment=environment,
        ready_within=member.ready_within,
        kept=bool(keeper),
        reports=bool(keeper) and member.progress != "runs",
        silent=member.progress in ("runs", "barriers", "calls", "instructions"),
        kept_command=tuple(command) if keeper else (),
        channel=_channel(member),
        package=member.package,
        awaited=_awaited(member),
        phases=member.phases,
        requests=member.requests,
        frozen_between_steps=member.frozen_between_steps,
    )


def _keeper(member: Member, native: Path, path: str) -> list[str]:
    """Return who starts the command again and again, and reports for it where it does not report itself."""
    if not environments.keepers(member.progress, member.environment, member.command, member.goes_on):
        return []
    loop = str(native / environments.LOOP)
    if member.progress == "runs":
        return [loop, "--"]
    return [loop, "--reports", _channel(member), "--", *_reporter(member, native, path)]


def _reporter(member: Member, native: Path, path: str) -> list[str]:
    """Return who starts the command once, and reports for it."""
    if member.progress == "output":
        ready = ["--ready", posix(member.ready_line)] if member.ready_line else []
        return [str(native / "lines"), "--step", posix(member.step_line), *ready, "--"]
    if member.progress in ("instructions", "calls"):
        try:
            return counter(member.calls, native, path)
        except probe_points.NoPlace as problem:
            raise WorkloadFailed(f"{member.name}: {str(problem).removesuffix('.')}") from None
    return []


def counter(calls: str, native: Path, path: str) -> list[str]:
    """Return who starts a command and counts these calls, or its instructions where none are named."""
    options = ["--instructions"]
    if calls:
        if (kind := probe_points.device_type()) is None:
            raise probe_points.NoPlace(probe_points.NO_UPROBES)
        options = [word for place in probe_points.find(calls, path) for word in ("--calls", f"{kind},{place.words}")]
    return [str(native / "count"), *options, "--"]


def _channel(member: Member) -> str:
    """Return which variable names the file of its heartbeat."""
    return BARRIERS_VARIABLE if member.progress == "barriers" else VARIABLE


def _awaited(member: Member) -> str:
    """Return what makes a member ready, where it does not report that itself."""
    if member.attach:
        what = f"call of '{member.step_function}'" if member.step_function else "training step"
        return f"no {what} was seen for long enough"
    if member.progress == "barriers":
        return "it made no call of call_barrier"
    if member.progress == "calls":
        return f"there was no call of {member.calls}"
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


# What is known only when a command is started, such as `{inputs}`.

PYTHON = "{python}"


def filled(member: Member, scratch: Path, cache: Path) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the member's command and its variables as they are here, and the variables that its interpreter needs."""
    known = {PYTHON: sys.executable, "{cpus}": str(len(member.cpus)), "{scratch}": str(scratch)}
    if member.inputs is not None and member.inputs_key is not None:
        known["{inputs}"] = str(built(member.inputs, member.inputs_key, cache))
    words = [_replaced(word, known) for word in member.command]
    variables = {name: _replaced(value, known) for name, value in member.variables.items()}
    ours = any(PYTHON in word for word in (*member.command, *member.variables.values()))
    return words, variables, {"PYTHONPATH": str(environments.import_folder(cache.resolve()))} if ours else {}


def built(name: str, key: str, cache: Path) -> Path:
    """Return where a data set lies."""
    place = inputs.place_of(name, key, cache.resolve())
    if not inputs.ready_file(place).is_file():
        raise CastmatesError(
            f"the data set '{name}' is not made yet ({place}); run `castmates internals build-inputs {name}` first."
        )
    return place


def _replaced(text: str, known: Mapping[str, str]) -> str:
    for token, value in known.items():
        text = text.replace(token, value)
    return text


# Which pages a member's memory lies on, as the kernel counts them, and which ones it was to be on.
#
# What a program gets by default depends on the distribution (transparent_hugepage: always, madvise or never), and a
# program on huge pages is another one for the cache and for address translation.

ON_HUGE_PAGES = frozenset({"chase", "capacity"})  # kernels that ask for them unless they are asked for usual ones
HUGE, USUAL, AS_THE_SYSTEM_GIVES = "huge", "usual", "as the system gives"


def pages_of(pids: Iterable[int], command: Sequence[str], root: Path = Path("/")) -> dict[str, int | str] | None:
    """Return the bytes of these processes, those on huge pages, and what was wanted; None where that is not known."""
    known = [counts for pid in pids if (counts := page_counts(pid, root))]
    if not known:
        return None
    resident, huge = map(sum, zip(*known, strict=True))
    return {"resident": resident, "huge": huge, "wanted": wanted(command)}


def wanted(command: Sequence[str]) -> str:
    """Return what a command asks the kernel for; only our own kernels are known."""
    name = Path(command[0]).name if command else ""
    if name not in (*KERNELS, *CONTROLS) or name in KEEPERS:
        return AS_THE_SYSTEM_GIVES
    asked = [word for word in command if word in ("--huge", "--small")]
    huge = asked[-1] == "--huge" if asked else name in ON_HUGE_PAGES
    return HUGE if huge else USUAL
