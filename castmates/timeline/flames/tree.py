"""Stacks folded into a tree of frames; with two profiles, each frame has what it takes on both sides.

Is a difference more than the luck of sampling? Alone and beside others, a frame has n1 and n2 samples in e1 and e2
steps (or seconds). If nothing differs, n1 of their sum is binomial with the share e1 / (e1 + e2). The root of the
deviance from that, with the sign of the difference, is near normal even for few samples. Where a scene was recorded
several times, samples may vary more between recordings than Poisson's law has it: the deviance is divided by how much
more.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from castmates.errors import CastmatesError
from castmates.timeline.flames.profile import ALONE, CORUN, Profile, scene_kind
from castmates.timeline.flames.reading import COMPILED, CUT, KERNEL

ENOUGH = 10  # samples of both sides together; of fewer nothing is claimed
BEYOND = 2.0  # roots of the deviance: of frames that do not differ, one in twenty is beyond


def root_of_deviance(before: float, after: float, before_in: float, after_in: float, dispersion: float = 1.0) -> float:
    """How far two numbers of samples are from equal rates; above 0 where the second rate is higher."""
    total = before + after
    if total <= 0 or before_in <= 0 or after_in <= 0:
        return 0.0
    expected = total * after_in / (before_in + after_in)
    deviance = 2 * (_part(after, expected) + _part(before, total - expected))
    return math.copysign(math.sqrt(max(deviance, 0.0) / dispersion), after - expected)


def _part(seen: float, expected: float) -> float:
    return seen * math.log(seen / expected) if seen > 0 else 0.0


def is_noise(before: float, after: float, root: float) -> bool:
    """Whether a difference may be luck."""
    return before + after < ENOUGH or abs(root) < BEYOND


def dispersion(profiles: tuple[Profile, ...], per: str) -> float:
    """How much more samples of functions vary between recordings of a scene than Poisson's law has it; at least 1."""
    excess, freedom = 0.0, 0
    for each in profiles:
        exposure = np.array([one.steps if per == "step" else one.t1_ns - one.t0_ns for one in each.stretches], float)
        if len(exposure) < 2 or exposure.sum() <= 0:
            continue
        functions = each.stacks.assign(function=each.stacks["stack"].str.rpartition(";")[2])
        seen = functions.pivot_table(index="function", columns="stretch", values="samples", aggfunc="sum", fill_value=0)
        counts = seen.reindex(columns=range(len(exposure)), fill_value=0).to_numpy(float)
        counts = counts[counts.sum(axis=1) >= ENOUGH]
        expected = counts.sum(axis=1, keepdims=True) * exposure / exposure.sum()
        kept = exposure > 0
        excess += float((((counts - expected) ** 2)[:, kept] / expected[:, kept]).sum())
        freedom += len(counts) * (int(kept.sum()) - 1)
    return max(1.0, excess / freedom) if freedom else 1.0


ROOT = "all"
STEP = "step"


@dataclass(slots=True)
class Side:
    """What a frame takes in one profile."""

    samples: int = 0
    weight: float = 0.0  # with all that it calls
    own: float = 0.0  # without


@dataclass(slots=True)
class Frame:
    """A frame with those that it calls."""

    name: str
    before: Side = field(default_factory=Side)  # alone; empty where there is one profile
    after: Side = field(default_factory=Side)
    calls: dict[str, "Frame"] = field(default_factory=dict)
    root: float = 0.0  # of the deviance, see `is_noise`
    noise: bool = True

    def below(self) -> Iterator["Frame"]:
        """This frame, and all below it."""
        waiting = [self]
        while waiting:
            frame = waiting.pop()
            yield frame
            waiting.extend(frame.calls.values())


@dataclass(frozen=True)
class Flame:
    """A tree, and by what its weights are divided."""

    root: Frame
    per: str
    after: Profile
    before: Profile | None = None
    dispersion: float = 1.0

    def values(self, frame: Frame) -> tuple[float, float]:
        """What a frame takes in a step or a second: alone, and in the profile."""
        before = frame.before.weight / self.before.exposure(self.per) if self.before else 0.0
        return before, frame.after.weight / self.after.exposure(self.per)

    def own(self, frame: Frame) -> tuple[float, float]:
        """The same without what it calls."""
        before = frame.before.own / self.before.exposure(self.per) if self.before else 0.0
        return before, frame.after.own / self.after.exposure(self.per)


def fold(profile: Profile, per: str) -> Flame:
    """The tree of one profile."""
    _check(profile, per)
    root = Frame(ROOT)
    _grow(root, profile, "after")
    return Flame(root, per, profile)


def difference(before: Profile, after: Profile, per: str) -> Flame:
    """The tree of two profiles, whose frames are told apart from noise."""
    for each in (before, after):
        _check(each, per)
    if before.event != after.event:
        raise CastmatesError(f"stacks were sampled by {before.event} and by {after.event}; they cannot be compared.")
    root = Frame(ROOT)
    _grow(root, before, "before")
    _grow(root, after, "after")
    wider = dispersion((before, after), per)
    before_in, after_in = before.exposure(per), after.exposure(per)
    for frame in root.below():
        seen = frame.before.samples, frame.after.samples
        frame.root = root_of_deviance(*seen, before_in, after_in, wider)
        frame.noise = is_noise(*seen, frame.root)
    return Flame(root, per, after, before, wider)


def functions(flame: Flame) -> list[Frame]:
    """Every function by itself, wherever it is called from, those that differ (or take) most first."""
    found: dict[str, Frame] = {}
    for frame in flame.root.below():
        if not frame.before.own and not frame.after.own:
            continue
        one = found.setdefault(frame.name, Frame(frame.name))
        for side in ("before", "after"):
            mine, theirs = getattr(one, side), getattr(frame, side)
            mine.samples += theirs.samples - sum(getattr(each, side).samples for each in frame.calls.values())
            mine.weight += theirs.own
            mine.own += theirs.own
    if flame.before is not None:
        before_in, after_in = flame.before.exposure(flame.per), flame.after.exposure(flame.per)
        for one in found.values():
            seen = one.before.samples, one.after.samples
            one.root = root_of_deviance(*seen, before_in, after_in, flame.dispersion)
            one.noise = is_noise(*seen, one.root)

    def size(one: Frame) -> float:
        before, after = flame.values(one)
        return -abs(after - before)

    return sorted(found.values(), key=size)


def _check(profile: Profile, per: str) -> None:
    if not profile.samples:
        raise CastmatesError(f"no stack of {profile.member} was sampled in scene {profile.scene}.")
    if profile.exposure(per) <= 0:
        raise CastmatesError(
            f"{profile.member} reported no steps while stacks were sampled in scene {profile.scene}; "
            "compare by the second (--per second)."
        )


def _grow(root: Frame, profile: Profile, side: str) -> None:
    """Add the stacks of a profile to one side of a tree."""
    summed = profile.stacks.groupby("stack", sort=True)[["samples", "weight"]].sum()
    for stack, samples, weight in summed.itertuples():
        frame = root
        for name in ("", *str(stack).split(";")):
            frame = frame.calls.setdefault(name, Frame(name)) if name else frame
            mine: Side = getattr(frame, side)
            mine.samples += int(samples)
            mine.weight += float(weight)
        own: Side = getattr(frame, side)
        own.own += float(weight)


# What a flame graph's frames are called, and what is written beside them.

LONG = 60  # letters of a name, beyond which its templates are left out
TAIL = 14  # letters of room, from which on the end of a name distinguishes it
MILLION = 1e6  # of nanoseconds a millisecond


def unit(flame: Flame) -> str:
    """What the weights of a tree are in."""
    what = "ms of CPU time" if flame.after.event == "cpu-clock" else f"million {flame.after.event}"
    return f"{what} per {flame.per}"


def number(value: float) -> str:
    """A value in that unit, with three digits."""
    scaled = value / MILLION
    return f"{scaled:.0f}" if abs(scaled) >= 100 else f"{scaled:.3g}"


def short(name: str) -> str:
    """A name without what fills a line: arguments of templates, and C++'s anonymous namespaces."""
    name = name.removesuffix(KERNEL).removesuffix(COMPILED).replace("(anonymous namespace)::", "")
    if len(name) <= LONG:
        return name
    kept, depth = [], 0
    for letter in re.sub(r"operator<{1,2}(?=\s|\(|$)", lambda found: found[0].replace("<", "\0"), name):
        if letter == "<":
            depth += 1
            if depth == 1:
                kept.append("<…>")
        elif letter == ">" and depth:
            depth -= 1
        elif not depth:
            kept.append("<" if letter == "\0" else letter)
    return "".join(kept)


def fitted(name: str, room: int) -> str:
    """A name in so many letters: of a name in scopes the end, which distinguishes it; flame.js does the same."""
    if room < 3:
        return ""
    if len(name) <= room:
        return name
    return f"…{name[1 - room :]}" if "::" in name and room >= TAIL else f"{name[: room - 1]}…"


def kind(name: str) -> str:
    """What kind of code a frame is."""
    if name == CUT or re.fullmatch(r"\[.*\]", name):
        return "unknown"
    if name.endswith(KERNEL):
        return "kernel"
    if name.startswith("py::"):
        return "python"
    return "compiled" if name.endswith(COMPILED) else "native"


def detail(flame: Flame, frame: Frame) -> str:
    """All that is known of a frame, in a few lines."""
    (before, after), (_, whole) = flame.values(frame), flame.values(flame.root)
    lines = [
        f"{frame.name}",
        f"{number(after)} {unit(flame)} ({samples(frame.after.samples)}, {100 * after / whole:.1f} %)",
    ]
    if flame.before is not None:
        lines.append(f"alone {number(before)} ({samples(frame.before.samples)})")
        lines.append(f"{change(before, after)}: {verdict(frame)}")
    elif own := flame.own(frame)[1]:
        lines.append(f"{number(own)} in itself")
    return "\n".join(lines)


def change(before: float, after: float) -> str:
    """A difference, in the unit and in per cent."""
    sign = "+" if after >= before else "−"
    amount = f"{sign}{number(abs(after - before))}"
    if not before:
        return f"{amount}, never seen alone"
    return (
        f"{amount}, never seen beside others"
        if not after
        else f"{amount}, {sign}{abs(100 * (after / before - 1)):.0f} %"
    )


def verdict(frame: Frame) -> str:
    """Whether a difference is more than noise."""
    if frame.before.samples + frame.after.samples < ENOUGH:
        return "too few samples"
    return "within noise" if frame.noise else f"more than noise (z = {frame.root:.1f})"


def samples(count: int) -> str:
    """So many samples, in words."""
    return f"{count} sample{'' if count == 1 else 's'}"


def small_print(flame: Flame) -> str:
    """All sentences that go with a graph, a warning first."""
    return " ".join(filter(None, (warning(flame.before, flame.after), how_to_read(flame))))


def how_to_read(flame: Flame) -> str:
    """The sentences under the title."""
    after, before = flame.after, flame.before
    what = "what ran on a CPU; waiting is not in it"
    caveats = " ".join(["", *notes(flame)])
    if before is None:
        return (
            f"{samples(after.samples)} in {_span(after)}, sampled by {after.event}: {what}. "
            f"Each frame is as wide as the {unit(flame)} that it takes with all that it calls, below it.{caveats}"
        )
    spread = f" Between recordings samples vary {flame.dispersion:.2g} times as much as by chance; z allows for it."
    return (
        f"Beside others {samples(after.samples)} in {_span(after)}, alone {samples(before.samples)} in "
        f"{_span(before)}, by {after.event}: {what}. Width: {unit(flame)} beside others, with all that a frame "
        "calls, below it; dashed: seen alone only, as wide as there. Grey: within the noise of sampling in this launch "
        f"(|z| < {BEYOND:g}, or fewer than {ENOUGH} samples); launches may differ by more."
        f"{spread if flame.dispersion > 1.05 else ''} Of frames that do not differ about one in twenty is coloured by "
        f"chance.{caveats}"
    )


def warning(*profiles: Profile | None) -> str:
    """Why the graph of a command that is run again and again may mislead, and by how much; "" of other members."""
    there = [each for each in profiles if each is not None and each.runs_again]
    if not there:
        return ""
    lacking = [f"{_share(each.unsampled)} {where(each.scene)}" for each in there if each.unsampled is not None]
    how_much = (
        f"Of its CPU time perf did not sample {' and '.join(lacking)}; a difference of that size may come from that."
        if lacking
        else "How much of its CPU time that is was not counted."
    )
    return (
        f"{there[0].member} is run again and again, and a run that begins while perf starts is not sampled. {how_much}"
    )


def where(scene: str) -> str:
    """Where a member ran in a scene, or in a kind of scenes."""
    kind_ = scene_kind(scene)
    return {ALONE: "alone", CORUN: "beside others"}.get(kind_, f"in scene {kind_}")


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.01 else "less than 1 %"


def notes(flame: Flame) -> list[str]:
    """What a reader has to know of the stacks themselves: how many were cut or lost, and what went wrong."""
    sides = [each for each in (flame.before, flame.after) if each is not None]
    every = sum(each.samples for each in sides)
    found = []
    if share := sum(each.cut * each.samples for each in sides) / every:
        found.append(f"{100 * share:.2g} % of the stacks were cut: their outermost frames are missing.")
    if lost := flame.after.lost:
        found.append(f"perf lost {lost:,} stacks of this trace.")
    if flame.after.why:
        found.append(f"Stacks are not complete: {flame.after.why.rstrip('.')}.")
    return found


def too_few(flame: Flame, command: str) -> str:
    """What to do where no frame of a difference is beyond noise; "" where one is."""
    if flame.before is None or not all(frame.noise for frame in flame.root.below()):
        return ""
    return (
        f"No frame differs by more than noise; there may be too few samples: {command} --seconds 60 --rounds 3 --again"
    )


def _span(profile: Profile) -> str:
    return f"{profile.seconds:.3g} s and {profile.steps:.0f} {'traced steps' if profile.by_operation else 'steps'}"
