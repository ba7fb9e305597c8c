"""What a flame graph's frames are called, and what is written beside them."""

import re

from castmates.timeline.flames.profile import ALONE, CORUN, Profile, scene_kind
from castmates.timeline.flames.reading import COMPILED, CUT, KERNEL
from castmates.timeline.flames.tree import BEYOND, ENOUGH, Flame, Frame

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
