"""Are the sums of our tables those that TensorFlow's own profile tools print of the same trace?

Traces that profile launches kept are read by us and by XProf, the converter behind TensorBoard's profile plug-in, and
compared twice: the whole trace, added up by our reader in XProf's definitions; and our tables' own calls, added up by
XProf. It fails where they differ by more than what XProf rounds.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import Report, run, say, scratch
from benchmarks.verdicts import Aim, Finding
from benchmarks.xprof_sums import Sums, as_we_count, sums
from benchmarks.xprof_tools import LISTED, VERSION, Shown, shown
from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.traces.devices import read_memory
from castmates.traces.operations import read_trace

TRACES = "*.xplane.pb"
FEWEST = 3  # traces
ROUNDING = 1e-9  # relative: XProf prints doubles; …
MOST_NS = 0.5  # … and a nanosecond is what a trace distinguishes


@dataclass(frozen=True)
class Difference:
    """How far one comparison is apart."""

    compared: int
    ns: float  # the largest difference of times; in steps too
    calls: int  # operations whose calls differ in number
    lacking: int  # operations that only one of the two has, though it should


def main() -> None:
    """Compare, print the table, and fail where something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "places", type=Path, nargs="*", default=[Path("results")], help="traces, or folders with traces in them"
    )
    parser.add_argument("--most", type=int, default=12, help="traces that are compared: the first of each scene first")
    options = parser.parse_args()
    files = chosen(options.places, options.most)
    report = Report(f"Traces beside XProf {VERSION}", "xprof_check")
    report.text(
        "*Whole trace*: calls and own times of every operation, steps and their waits for input, by our reader in "
        f"XProf's definitions. XProf lists the {LISTED} longest operations; the others are compared with the sum of "
        "all. *Our tables*: the calls that our tables have, added up by XProf. Differences are the largest of any "
        "operation."
    )
    rows, worst, wrong = [], 0.0, []
    with scratch() as folder:
        say(f"{len(files)} traces")
        copies = [folder / f"{number}.xplane.pb" for number in range(len(files))]
        own = [as_we_count(file, copy) for file, copy in zip(files, copies, strict=True)]
        theirs = shown([*files, *copies])
    for number, file in enumerate(files):
        whole = sums(file)
        first, second = compared(whole, theirs[number]), compared(own[number], theirs[len(files) + number])
        steps, peaks = steps_compared(whole, theirs[number]), peaks_compared(file, theirs[number])
        worst = max(worst, first.ns, second.ns, steps.ns, peaks.ns)
        if any(one.calls or one.lacking for one in (first, second, steps, peaks)) or not steps.compared:
            wrong.append(file)
        name = " ".join(filter(None, which(file)))
        rows.append([name, *words(first), str(whole.overlapping), *words(second), *words(steps)])
    report.table(HEADER, rows)
    about, aim = "largest difference to XProf", Aim(most=MOST_NS)  # a sum, which has no spread
    found = Finding(what=about, value=worst, unit="ns", low=worst, high=worst, count=len(files), of="traces", aim=aim)
    report.found(found)
    report.print()
    if wrong or worst > MOST_NS:
        raise CastmatesError(f"XProf and our reader differ: {', '.join(map(str, wrong)) or f'by {worst:g} ns'}.")


HEADER = [
    "trace",
    "whole trace: operations",
    "differ (ns)",
    "overlapping events",
    "our tables: operations",
    "differ (ns)",
    "steps",
    "differ (ns)",
]


def chosen(places: Sequence[Path], most: int) -> list[Path]:
    """The traces in these places, those of different leads and scenes first."""
    files = [file for place in places for file in (sorted(place.rglob(TRACES)) if place.is_dir() else [place])]
    if len(files) < FEWEST:
        raise CastmatesError(
            f"{', '.join(map(str, places))}: found {counted(len(files), 'trace')}, needs {FEWEST}; measure a study "
            "with the key `profile`: castmates sweep config/studies/operations.yaml."
        )
    turns: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, Path]] = []
    for file in files:
        cohort, _, scene, _ = which(file)
        turns[cohort, scene] += 1
        ranked.append((turns[cohort, scene], file))
    return [file for _, file in sorted(ranked)[:most]]


def compared(ours: Sums, theirs: Shown) -> Difference:
    """Compare every operation that is listed, and the sum of all."""
    listed = theirs.operations
    gone = set(listed) - set(ours.calls)
    # The list has a row for what is idle in another table; it is full at one less.
    missing = set(ours.calls) - set(listed) if len(listed) < LISTED - 1 else set()
    both = set(listed) & set(ours.calls)
    apart = [difference_ns(listed[name][1], ours.own_ps[name] / 1e6) for name in both]
    apart.append(difference_ns(theirs.all_us, sum(ours.own_ps.values()) / 1e6))
    calls = sum(listed[name][0] != ours.calls[name] for name in both)
    return Difference(len(both), max(apart), calls, len(gone | missing))


def steps_compared(ours: Sums, theirs: Shown) -> Difference:
    """Compare steps and their waits for input; XProf leaves the first and the last one out."""
    apart = [
        difference_ns(1e3 * shown_ms, ps / 1e6)
        for number, both in theirs.steps.items()
        for shown_ms, ps in zip(both, ours.steps.get(number, (0, 0)), strict=True)
    ]
    return Difference(len(theirs.steps), max(apart, default=0.0), 0, len(set(theirs.steps) - set(ours.steps)))


def peaks_compared(file: Path, theirs: Shown) -> Difference:
    """Compare what allocators had in use at most."""
    memory = read_memory(file, read_trace(file))
    ours: dict[str, tuple[int, int]] = {}
    for name, in_use, peak in zip(memory.allocator, memory.in_use.tolist(), memory.peak.tolist(), strict=True):
        before = ours.get(name, (0, 0))
        ours[name] = (max(before[0], in_use), max(before[1], peak))
    return Difference(len(ours), 0.0, int(ours != theirs.peaks), 0)


def difference_ns(theirs_us: float, ours_us: float) -> float:
    """How far two times are apart, without what a double rounds."""
    apart = abs(theirs_us - ours_us)
    return 1e3 * apart if apart > ROUNDING * abs(theirs_us) else 0.0


def which(file: Path) -> tuple[str, str, str, str]:
    """Cohort, launch, scene and repetition of a kept trace; of any other the folder that it lies in."""
    parts = file.parts
    if "profiles" not in parts or len(parts) < parts.index("profiles") + 6:
        return str(file.parent), "", "", ""
    cohort, launch, _, scene, repetition = parts[parts.index("profiles") + 1 :][:5]
    return cohort, launch, scene, repetition


def words(one: Difference) -> list[str]:
    """The cells of a comparison."""
    problems = [f"{one.calls} with other calls" * bool(one.calls), f"{one.lacking} lacking" * bool(one.lacking)]
    return [str(one.compared), ", ".join([f"{one.ns:.3g}", *filter(None, problems)])]


if __name__ == "__main__":
    run(main)
