"""The scenes of a company: the baselines once, then each mix."""

from collections.abc import Mapping, Sequence

from castmates.study.cpus import name_of
from castmates.study.spec import UNMANAGED, Member, Mix, Scene, SceneKind


def scenes_of(mixes: Sequence[Mix], members: Mapping[str, Member]) -> tuple[Scene, ...]:
    """`solo`, its independent twin, a placebo per set of antagonists' CPUs, each co-run, each antagonist alone."""
    lead = mixes[0].lead
    scenes = [_scene("solo", "solo", active=(lead,)), _scene("solo-again", "solo-again", active=(lead,))]
    for cpus in dict.fromkeys(placebo_cpus(mix, members) for mix in mixes):
        scenes.append(_scene(placebo_name(cpus), "placebo", active=(lead,), placebos=cpus))
    for mix in mixes:
        scenes.append(_scene(f"corun:{mix.name}", "corun", active=(lead, *mix.antagonists), mix=mix.name))
    for name in dict.fromkeys(name for mix in mixes for name in mix.antagonists):
        scenes.append(_scene(f"alone:{name}", "alone", active=(name,)))
    return tuple(scenes)


def placebo_cpus(mix: Mix, members: Mapping[str, Member]) -> tuple[int, ...]:
    """The CPUs that the antagonists of a mix hold."""
    return tuple(sorted(cpu for name in mix.antagonists for cpu in members[name].cpus))


def placebo_name(cpus: Sequence[int]) -> str:
    """The name of the scene in which placebos hold these CPUs."""
    return f"placebo:{name_of(cpus)}"


def _scene(name: str, kind: SceneKind, active: tuple[str, ...], placebos: tuple[int, ...] = (), mix: str = "") -> Scene:
    return Scene(name=name, kind=kind, mix=mix, active=active, placebos=placebos, partition=UNMANAGED)
