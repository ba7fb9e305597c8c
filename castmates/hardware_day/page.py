"""The page of a day: what this machine is; and the same in a few lines for the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from castmates.english import counted, duration, number
from castmates.errors import CastmatesError
from castmates.files import mapping_if_there, replace_text, writing
from castmates.hardware_day import sweep
from castmates.hardware_day.steps import DONE, Diary, Place, Step
from castmates.linux.event_names import is_software
from castmates.machine.capture.capture import opened
from castmates.machine.facts import machine_facts
from castmates.machine.probes import platform_here
from castmates.report.machine_facts import MachineFacts
from castmates.report.page.common_parts import rendered
from castmates.report.results import Results, records
from castmates.report.text import machine, recommendation, words
from castmates.report.text.stamps import stamps
from castmates.study.memory_peak import MODES
from castmates.study.rdt_trial import VERIFIED, Tried
from castmates.study.spec import UNMANAGED
from castmates.trials.counters.table import summary

TEMPLATE = "hardware_day.html.j2"
RECORDS = ("memory-peak", "counters", "rdt", "truth")
BARE, VIRTUAL, EMULATED = "bare metal", "virtual, not bare metal", "emulated, not hardware"
CONTAINED = "in a container"
CONFIRM = "cd sweep && castmates sweep study.yaml --confirm"


@dataclass(frozen=True)
class Verdict:
    """One line of the first screen."""

    what: str
    word: str
    said: str


@dataclass(frozen=True)
class Table:
    """A table of the page."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def facts_of(place: Place) -> MachineFacts:
    """The machine's facts as its capture has them, which has no names; as they are here where there is no capture."""
    here = kept = machine_facts()
    if place.capture_file.is_file():
        with opened(place.capture_file) as root:
            kept = machine_facts(root)
    tried = {name: here[name] for name in ("virtualisation", "hypervisor_flag", "perf")}
    return MachineFacts.model_validate(place.names.without(kept | tried | {"hostname": None}))


def platform_of(facts: MachineFacts) -> str:
    """Where the numbers come from."""
    if platform_here() == "emulated":
        return EMULATED
    if facts.hypervisor_flag or (facts.virtualisation.get("vm") or "none") != "none":
        return VIRTUAL
    return CONTAINED if machine.virtualisation(facts) else BARE


def verdicts(place: Place) -> Iterator[Verdict]:
    """What each trial came to."""
    peak, counts, rdt, truth = (mapping_if_there(place.record_file(name)) for name in RECORDS)
    if peak:
        yield Verdict("memory", "measured", peak["said"])
    if counts:
        found = counts["events"].items()
        hardware = {verdict for name, verdict in found if not is_software(name)}
        word = "verified" if "verified" in hardware else "no hardware counter was checked"
        word = "wrong" if any(verdict == "wrong" for _, verdict in found) else word
        yield Verdict("counters", word, summary(counts).partition(" Numbers are")[0])
    if tried := Tried.of(rdt):
        for part, each in tried.parts.items():
            yield Verdict(part, each.verdict, each.said)
    if truth:
        yield Verdict("known losses", truth["verdict"], truth["said"])


def bad(found: Sequence[Verdict]) -> list[str]:
    """The verdicts that this machine does not pass."""
    good = {"measured", "verified", "found", *(word for each in VERIFIED.values() for word in each)}
    return [one.what for one in found if one.word not in good]


def tables(place: Place) -> Iterator[Table]:
    """The figures of each trial."""
    peak, counts, rdt, truth = (mapping_if_there(place.record_file(name)) for name in RECORDS)
    if rows := [row for one in rdt.get("caches", []) if (row := _isolation(one))]:
        heads = ["Cache", "Beside a stream in other ways", "In the same ways", "Verdict"]
        yield Table("Isolation: time of a load, in times of that alone (medians)", heads, rows)
    for one in rdt.get("caches", []):
        yield from _throttles(one)
    if peak:
        rows = [[str(one["cores"]), *(f"{one[mode] / 1e9:.3g}" for mode in MODES)] for one in peak["curve"]]
        yield Table("Memory bandwidth by cores of a package (GB/s)", ["Cores", *MODES], rows)
    if truth:
        keys, heads = ("loss", "low", "high"), ["Known (%)", "Found (%)", "From", "To", "Verdict"]
        rows = [[f"{one['known']:g}", *(_figure(one[key]) for key in keys), one["verdict"]] for one in truth["losses"]]
        yield Table("Known losses, and what was found, with 95 % intervals", heads, rows)
    if counts:
        yield Table("Counters", ["Event", "Verdict"], [[*pair] for pair in counts["events"].items()])


def _isolation(cache: Mapping[str, Any]) -> list[str]:
    """What a neighbour costs in other ways, and in the same; nothing where that was not tried."""
    found = cache.get("isolation", {})
    windows = found.get("windows", {})
    times = [median(ns for ns, _ in windows.get(name) or [(0.0, None)]) for name in ("alone", "apart", "shared")]
    if not all(times):
        return []
    alone, apart, shared = times
    return [str(cache["llc"]), f"{apart / alone:.2f}", f"{shared / alone:.2f}", found["verdict"]]


def _throttles(cache: Mapping[str, Any]) -> Iterator[Table]:
    curves = cache.get("throttles", {}).get("curves", [])
    if not curves or len(curves[0]["curve"]) < 2:
        return
    heads = [f"Step ({cache['throttles']['unit']})", *(counted(curve["cores"], "core") for curve in curves)]
    rows = [
        [str(points[0]["step"]), *(f"{one['percent']:.1f} [{one['low']:.1f}, {one['high']:.1f}]" for one in points)]
        for points in zip(*(curve["curve"] for curve in curves), strict=True)
    ]
    what = f"Throttles of cache {cache['llc']}: per cent of the unthrottled rate, with 99 % intervals"
    yield Table(what, heads, rows)


def _figure(value: float | None) -> str:
    return "–" if value is None else number(value, 2)


def losses(found: Results) -> Table:
    """What each lead of the sweep loses without a partition, and under each."""
    effects = found.effects[(found.effects["role"] == "lead") & (found.effects["baseline"] == "alone")]
    heads = ["Lead", "Beside", "Partition", "Loss (%)", "95 % interval", "Verdict"]
    rows = []
    for row in records(effects):
        loss = words.effect(row)
        partition = "none" if row["partition"] == UNMANAGED else row["partition"]
        rows.append([row["lead"], row["antagonists"], partition, loss.amount, loss.ends, row["verdict"]])
    return Table(f"Loss of each lead against its rate alone; intervals {words.between(effects)}", heads, rows)


def lacking(steps: Sequence[Step], diary: Diary) -> Iterator[str]:
    """What was not done, and why."""
    for step in steps:
        outcome = diary.outcomes.get(step.name)
        if outcome is None:
            yield f"{step.name}: not begun."
        elif outcome.status != DONE:
            yield f"{step.name}: {outcome.status}{': ' if outcome.reason else ''}{outcome.reason}"


def write(place: Place, steps: Sequence[Step], diary: Diary) -> list[str]:
    """Write the page; return what it says first, for the terminal."""
    facts, found, lacks = facts_of(place), list(verdicts(place)), list(lacking(steps, diary))
    try:
        swept = sweep.results(place)
    except CastmatesError as problem:
        swept = None
        lacks.append(str(problem))
    platform = platform_of(facts)
    advice = recommendation.sentences(swept.recommendations, swept.effects, CONFIRM) if swept else []
    context = {
        "running_head": platform,
        "platform": platform,
        "is_bare": platform == BARE,
        "line": machine.in_a_line(facts),
        "verdicts": [asdict(one) for one in found],
        "bad": bad(found),
        "advice": advice,
        "stamps": [pill.word for pill in stamps(swept)] if swept else [],
        "described": machine.described(facts),
        "quirks": [f"{quirk.title}: {quirk.happens}" for quirk in machine.quirks(facts)],
        "steps": [_row(step, diary) for step in steps],
        "lacking": [*lacks, *machine.lacks(facts, bool(swept and swept.partitioned))],
        "tables": [asdict(table) for table in ([losses(swept)] if swept else []) + list(tables(place))],
        "restored": diary.restored,
    }
    context = place.names.without(context)
    with writing(place.page_file):
        replace_text(place.page_file, rendered(TEMPLATE, context))
    lines = [f"{context['line']} ({platform})", *(f"{one.what}: {one.word}" for one in found), *context["advice"]]
    return [*lines, *context["lacking"]]


def _row(step: Step, diary: Diary) -> list[str]:
    outcome = diary.outcomes.get(step.name)
    if outcome is None:
        return [step.name, step.about, "not begun", "–"]
    return [step.name, step.about, outcome.status, duration(outcome.seconds) if outcome.seconds >= 1 else "–"]
