"""The trace launches of a study: one of each mix that it wants traced, apart from measured and profile launches."""

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from castmates.errors import CastmatesError
from castmates.study.class_names import plain_workload_of, without_class
from castmates.study.model import Study
from castmates.study.profile_launches import traced_by
from castmates.study.scenes import under
from castmates.study.spec import MOST_SAMPLED, SAMPLED, UNMANAGED, Cohort, Counting, Design, Launch, Mix, Scene, Tracing
from castmates.study.tracing_keys import TraceKeys
from castmates.study.written import bytes_of

NUMBER = 1  # a mix has one trace launch; tracing again replaces it
READINGS = 20.0  # a second, of counters and of the cache
NOTHING_GIVEN: Mapping[str, str] = {}
BESIDE = re.compile(r"\s+beside\s+|[+,\s/]+")


def trace_launches(
    study: Study, mixes: Sequence[Mix], cohort_of: Callable[[Sequence[Mix]], Cohort], usual: Design
) -> tuple[Launch, ...]:
    """Plan them from the `usual` design of measured launches; none without mixes under the key `trace`."""
    keys = study.trace
    if keys is None:
        return ()
    return tuple(
        _launch(study.name, study.seed, keys, cohort_of([mix]), usual)
        for name in dict.fromkeys(keys.mixes)
        for partition in (UNMANAGED, *dict.fromkeys(keys.partitions))
        for mix in mixes
        if mix.antagonists and name in (mix.name, without_class(mix.name)) and partition_of(mix) == partition
    )


def refuse_unknown_mixes(
    study: Study,
    mixes: Sequence[Mix],
    study_file: str,
    left_out: Iterable[str] = (),
    named: Mapping[str, str] = NOTHING_GIVEN,
) -> None:
    """Refuse mixes, partitions and members under `trace` that the study has not.

    `named` has the options of a command by the keys that they replace.
    """
    keys = study.trace
    if keys is None:
        return
    known = traceable_mixes(mixes)
    lacking = {without_class(name) for name in left_out}
    for number, name in enumerate(keys.mixes, start=1):
        if name not in known and without_class(name) not in {*map(without_class, known), *lacking}:
            raise CastmatesError(
                f"{study_file}: 'trace.mixes.{number}' is '{name}', which is no mix of this study; it has "
                f"{_some(known)}."
            )
    parts = list(dict.fromkeys(partition_of(mix) for mix in mixes if mix.partitions))
    for number, name in enumerate(keys.partitions, start=1):
        if name not in parts:
            has = f"it has {_some(parts)}" if parts else "it has none (castmates help partitions)"
            raise CastmatesError(
                f"{study_file}: {_place('partitions', number, named)} is '{name}', which is no partition of this "
                f"study; {has}."
            )
    _refuse_unknown_members(keys, mixes, study_file, named)


def _place(key: str, number: int, named: Mapping[str, str]) -> str:
    """What has to be changed: an option, or a place in the study."""
    return named.get(key, f"'trace.{key}.{number}'")


def _refuse_unknown_members(keys: TraceKeys, mixes: Sequence[Mix], study_file: str, named: Mapping[str, str]) -> None:
    wanted = {without_class(name) for name in keys.mixes}
    ours = [mix for mix in mixes if without_class(mix.name) in wanted]
    there = list(dict.fromkeys(plain_workload_of(name) for mix in ours for name in (mix.lead, *mix.antagonists)))
    for number, name in enumerate(keys.members, start=1):
        if ours and name not in there:
            raise CastmatesError(
                f"{study_file}: {_place('members', number, named)} is '{name}', which is no member of a traced mix; "
                f"members are {_some(there)}."
            )


def traceable_mixes(mixes: Iterable[Mix]) -> list[str]:
    """The names of the mixes that can be traced: those with somebody beside the lead."""
    return list(dict.fromkeys(mix.name for mix in mixes if mix.antagonists))


def chosen_mix(given: str, mixes: Iterable[Mix], study_file: str) -> str:
    """The mix that is meant: by its name, or by words that only one mix has."""
    names = traceable_mixes(mixes)
    found = meant(given, names)
    if len(found) == 1:
        return found[0]
    if found:
        raise CastmatesError(f"'{given}' may mean several mixes of {study_file}: {_some(found)}; give one of them.")
    raise CastmatesError(f"{study_file}: this study has no mix '{given}'; it has {_some(names)}.")


def meant(given: str, names: Sequence[str]) -> list[str]:
    """The mixes that may be meant: the one of this name, or those that have all of these words, or begin so."""
    if given in names:
        return [given]
    words = [word for word in BESIDE.split(given.strip().removeprefix("corun:")) if word]
    by_name = {name: re.split(r"[+:~]", name) for name in names}
    exact = [name for name, parts in by_name.items() if words and all(word in parts for word in words)]
    begun = [
        name
        for name, parts in by_name.items()
        if words and all(any(part.startswith(word) for part in parts) for word in words)
    ]
    found = exact or begun
    whole = [name for name in found if len(by_name[name]) == len(words)]
    return whole if len(whole) == 1 else found


def trace_name(launch: Launch) -> str:
    """The name of a trace, which is its folder's: that of its mix, and its partition where it has one."""
    mix = launch.cohort.mixes[0]
    return under(mix.name, partition_of(mix))


def partition_of(mix: Mix) -> str:
    """The one partition of a mix; UNMANAGED for none."""
    return mix.partitions[0].name if mix.partitions else UNMANAGED


def identity_of(launch: Launch) -> str:
    """What decides whether a trace has to be made again."""
    cohort, tracing = launch.cohort, launch.design.tracing
    what = tracing.canonical() if tracing else ""
    words = [cohort.id, str(cohort.protocol), str(launch.seed), what, cohort.mixes[0].identity]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def scenes_of_trace(cohort: Cohort) -> list[Scene]:
    """The scenes that are recorded: the lead alone, and beside its antagonists, under the partition if there is one."""
    partition, lead = partition_of(cohort.mixes[0]), cohort.lead.name
    return [
        scene
        for scene in cohort.scenes
        if lead in scene.active and (scene.kind == "alone" or (scene.kind == "corun" and scene.partition == partition))
    ]


def profiled_steps(launch: Launch) -> int:
    """How many steps the lead's framework profiles in each recording; 0 where it cannot, or need not."""
    tracing = launch.design.tracing
    return tracing.steps if tracing and traced_by(launch.cohort) is not None else 0


def recorded_members(launch: Launch) -> list[str]:
    """The names of the members whose processes perf records."""
    tracing = launch.design.tracing
    wanted = tracing.members if tracing else ()
    return [each.name for each in launch.cohort.members if not wanted or each.workload in wanted]


def most_bytes(launch: Launch) -> int:
    """How much the raw files of a launch may take on disk before they are read: every recording at its largest."""
    tracing = launch.design.tracing
    if tracing is None:
        return 0
    events = tracing.most if set(tracing.events) - set(SAMPLED) else 0
    sampled = min(tracing.most, MOST_SAMPLED) * len(set(tracing.events) & set(SAMPLED))
    return (events + sampled) * tracing.rounds * len(scenes_of_trace(launch.cohort))


def _launch(study: str, study_seed: int, keys: TraceKeys, cohort: Cohort, usual: Design) -> Launch:
    """One launch: the design of measured launches, with recordings in the place of rounds."""
    tracing = Tracing(
        seconds=keys.seconds,
        rounds=keys.rounds,
        steps=keys.steps,
        events=tuple(keys.events),
        members=tuple(keys.members),
        counts=tuple(keys.counts.items()),
        buffer=bytes_of(keys.buffer) if keys.buffer else 0,
        most=bytes_of(keys.most),
        keep=bytes_of(keys.keep),
    )
    counted = Counting(events=usual.counters.events, how=usual.counters.how, series=READINGS, cost_pairs=0)
    cohort = cohort.model_copy(update={"scenes": tuple(scenes_of_trace(cohort))})
    changes = {"rounds": 0, "spare_rounds": 0, "monitor": READINGS, "slice": None, "counters": counted}
    design = usual.model_copy(update={**changes, "tracing": tracing})
    seed = random.Random(f"{study_seed}/trace/{cohort.id}").getrandbits(32)
    return Launch(study=study, cohort=cohort, number=NUMBER, seed=seed, design=design)


def _some(names: Sequence[str], most: int = 8) -> str:
    if not names:
        return "none with an antagonist"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
