"""Slices and windows for tests, written down by hand; times are in milliseconds."""

from castmates.protocols import Sample
from castmates.runner.rounds.slices import Slice
from castmates.runner.rounds.window import Window
from castmates.study.spec import UNMANAGED, Scene

MS = 1_000_000
LEAD, BESIDE = "lead@0", "beside@1"


def scene_of(name="corun:m", active=(LEAD, BESIDE), kind="corun"):
    return Scene(name=name, kind=kind, mix="", active=active, placebos=(), partition=UNMANAGED)


def beats(begin, end, step, first=0):
    """Heartbeats every `step` from one moment to another, both included where they fall on one."""
    return [(int(t * MS), first + number) for number, t in enumerate(range(begin, end + 1, step))]


def slice_of(begin, scene=None, step=10, length=100, settle=20, cycle=1, **more):
    """A slice that was switched to at `begin`, with steps of this length of everyone who runs, or of each."""
    scene = scene or scene_of()
    steps = step if isinstance(step, dict) else dict.fromkeys(scene.active, step)
    since = {name: beats(begin + steps[name], begin + length, steps[name]) for name in scene.active}
    more = {"cycle": cycle, "number": cycle, "since_switch": since, "samples": cpu_time(begin + length, 0.05)} | more
    return Slice(scene, (begin + settle) * MS, (begin + length) * MS, begin * MS, **more)


def cpu_time(t, seconds, name=LEAD):
    return [Sample(t * MS, "cputime", name, "cpu_s", seconds)]


def window_of(slices, watched=None, slow=()):
    """A window of these slices, whose last one is watched unless another one is."""
    made = Window((watched or slices[-1]).scene, list(slices), slow=frozenset(slow))
    made.watched = watched or slices[-1]
    made.watched.watched = True
    return made
