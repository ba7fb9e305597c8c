"""Findings in words: what was found, by which numbers, why it matters, what to do, and the command that tries it."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from castmates.analysis.findings.conditions import NOT_KNOWN, NOT_SHOWN, PROVEN, SEEN, SUSPECTED, Evidence
from castmates.analysis.findings.findings import Finding, change_for
from castmates.english import counted, listed
from castmates.report.findings import findings_of
from castmates.report.findings import tried as trials
from castmates.report.results import Results
from castmates.report.text.operations import operation_words
from castmates.report.text.recommendation import bargain, fresh_words, paid
from castmates.report.text.words import Quantity, number, plain, sentences
from castmates.report.traces import way_to
from castmates.results.columns.trace import OPENED
from castmates.results.finding_rules import ADVICE
from castmates.results.named import study_argument
from castmates.study.class_names import without_class
from castmates.study.finding_rules import PLACE
from castmates.study.spec import Plan

FASTER = " \N{MULTIPLICATION SIGN} as fast"
UNITS = {
    "share": " %", "percent": " %", "faster": FASTER, "ms": " ms", "mb": " MB", "times": " times", "number": "",
}  # fmt: skip
LARGE = 1000  # from which on decimals only distract
SURE = {
    PROVEN: "proven: the whole interval is beyond the threshold",
    SEEN: "seen, and not proven",
    SUSPECTED: "suspected: the interval reaches the threshold",
}


@dataclass(frozen=True)
class InWords:
    """A finding in words."""

    id: str
    title: str
    state: str
    sure: str  # how sure it is, and why
    sentence: str  # "" where there is no number
    because: str
    advice: str
    evidence: tuple[str, ...]  # each number, with its table and row
    command: str  # that tries the advice; "" where none does
    shows: str  # what that shows
    platform: str
    who: str  # whom it is about
    tried: tuple[str, ...] = ()  # what trials of it gave
    look: str = ""  # the command that shows it in a trace; "" where no trace does
    place: str = ""  # where in the trace to look, in a sentence
    trace: str = ""  # its name
    page: str = ""  # what opens it in a browser, from the report's folder; "" where it is not there


def in_words(results: Results, finding: Finding) -> InWords:
    """The words of one finding."""
    rule, trial = finding.rule, finding.rule.trial
    trace = str((finding.evidence[0].cells or {}).get("trace", ""))
    command = command_of(results, finding)
    return InWords(
        id=finding.id,
        title=rule.title,
        state=finding.state,
        sure=_sure(finding),
        sentence=sentence_of(results, finding),
        because=rule.because,
        advice=rule.advice,
        evidence=tuple(evidence_words(each) for each in finding.evidence if each.cells is not None),
        command=command,
        shows=trial.shows if trial and command else "",
        platform=finding.subject.platform,
        who=plain(finding.subject.mix or finding.subject.lead) or "the study",
        look=_look(results, finding),
        place=_place(finding),
        trace=trace,
        page=way_to(trace, OPENED) if trace and (results.folder.trace(trace) / OPENED).is_file() else "",
    )


def _look(results: Results, finding: Finding) -> str:
    study = study_argument(results.study_file) if results.study_file else " STUDY.yaml"
    return _filled(finding.rule.look, study, finding) if finding.rule.look and finding.evidence[0].cells else ""


def _place(finding: Finding) -> str:
    """Where a trace shows it: its longest step, counted from its first event, as viewers count."""
    cells = finding.evidence[0].cells or {}
    at, ms = (cells.get(name) for name in ("longest_step_at_s", "longest_step_ms"))
    if not isinstance(at, float) or not isinstance(ms, float) or at != at:
        return ""
    return (
        f"in the trace `{cells['trace']}`, the longest step of the scene begins {at:.4f} s after the first event and "
        f"takes {number(ms, 2)} ms"
    )


def _sure(finding: Finding) -> str:
    seen = [each for each in finding.evidence if each.state == SEEN and each.why]
    without = dict.fromkeys(each.why if each.low == each.low else f"no interval, because {each.why}" for each in seen)
    reasons = f" ({listed(list(without))})" if finding.state == SEEN and without else ""
    few = [each.why for each in finding.evidence if each.state == SUSPECTED and each.why]
    return f"suspected: {few[0]}" if few else f"{SURE.get(finding.state, finding.state)}{reasons}"


def sentence_of(results: Results, finding: Finding) -> str:
    """What the rule says of it; "" where a number is missing."""
    if finding.state == NOT_KNOWN or any(each.cells is None for each in finding.evidence):
        return ""
    words = _words(results, finding)
    text = PLACE.sub(lambda found: words.get(found[1], found[0]), finding.rule.sentence)
    return text[:1].upper() + text[1:] if text.startswith("the ") else text


def _words(results: Results, finding: Finding) -> dict[str, str]:
    subject, first = finding.subject, finding.evidence[0]
    row = first.cells or {}
    cells = {name: _cell(name, value) for name, value in row.items() if not name.startswith("_")}
    numbers = [name for name, value in row.items() if isinstance(value, float)]
    # What the words of a rule call by the column alone: 9.1 % [8.0, 10.2].
    known = [name for name in numbers if f"{name.removesuffix('_pct')}_low" in row]
    cells |= {name: str(Quantity.of(row, name, "%" if name.endswith("_pct") else "")) for name in known}
    if first.table == ADVICE:
        cells["bargain"] = f"{bargain(row, paid(row, results.effects))} ({fresh_words(row)})"
    beside, lead = plain(subject.mix.partition("+")[2]), plain(subject.lead)
    shown = [number_words(each) for each in finding.evidence]
    told = {"number": shown[0]} | {f"number{place}": words for place, words in enumerate(shown[1:], start=2)}
    threshold = f"{_in_unit(first, first.threshold)}{UNITS[first.shown]}"
    named = {
        "study": results.name,
        "lead": lead,
        "mix": subject.mix,
        "beside": f"beside {beside}" if beside else "alone",
    }
    return {**cells, **named, **told, "threshold": threshold}


def _cell(name: str, value: object) -> str:
    if name == "group":
        return operation_words(str(value))
    if isinstance(value, float):
        return number(value, 0 if abs(value) >= LARGE else 1)
    return plain(str(value)) if name == "member" else str(value)


def number_words(evidence: Evidence) -> str:
    """23.1 % [20.0, 26.2]."""
    words = f"{_in_unit(evidence, evidence.value)}{UNITS[evidence.shown]}"
    shown = (_shown(evidence, end) for end in (evidence.value, evidence.low, evidence.high))
    return f"{words} {Quantity.made(shown, digits=_digits(evidence)).interval}".rstrip()


def _in_unit(evidence: Evidence, value: float) -> str:
    shown = _shown(evidence, value)
    return number(shown, _digits(evidence)) if value != evidence.threshold else f"{shown:g}"


def _shown(evidence: Evidence, value: float) -> float:
    if evidence.shown == "faster":
        return 1 + value / 100
    return 100 * value if evidence.shown == "share" else value


def _digits(evidence: Evidence) -> int:
    if evidence.shown == "number" and abs(evidence.value) >= LARGE:
        return 0
    return 2 if evidence.shown in ("times", "faster", "number") else 1


def evidence_words(evidence: Evidence) -> str:
    """Which number of which row of which table, and its threshold."""
    row = ", ".join(f"{name} {value}" for name, value in evidence.row.items())
    side = "above" if evidence.is_above else "below"
    threshold = f"{_in_unit(evidence, evidence.threshold)}{UNITS[evidence.shown]}"
    return (
        f"`tables/{evidence.table}.csv`{f' ({row})' if row else ''}: {evidence.number} is "
        f"{number_words(evidence)}; the threshold is {side} {threshold}"
    )


def command_of(results: Results, finding: Finding) -> str:
    """The command that tries the advice; "" where nothing does."""
    trial = finding.rule.trial
    if trial is None:
        return ""
    study = study_argument(results.study_file) if results.study_file else " STUDY.yaml"
    if trial.command:
        return _filled(trial.command, study, finding) if finding.evidence[0].cells else ""
    if finding.subject.platform == "modelled" or (trial.lead and not _fits(results.plan, finding)):
        return ""  # nothing runs that could be changed, or nothing of it
    return f"castmates advice{study} --try {shlex.quote(finding.id)}"


def _fits(plan: Plan, finding: Finding) -> bool:
    trial, lead = finding.rule.trial, without_class(finding.subject.lead)
    commands = [cohort.lead.command for cohort in plan.cohorts if cohort.lead.workload == lead]
    return trial is not None and bool(commands) and change_for(trial, commands[0]) is not None


def _filled(command: str, study: str, finding: Finding) -> str:
    """Another command, with the study and what names the row, each as one word of a shell."""
    cells: Mapping[str, Any] = finding.evidence[0].cells or {}
    named = {name: shlex.quote(str(value)) for name, value in cells.items()} | {"study": study.strip()}
    text = PLACE.sub(lambda found: named.get(found[1], found[0]), command)
    return re.sub(" +", " ", text).strip()


def others(found: Iterable[Finding]) -> str:
    """What became of the other checks: 2 suspect something, 30 find nothing, 4 cannot be judged."""
    states = [finding.state for finding in found]
    words = {
        SUSPECTED: ("suspects something", "suspect something"),
        NOT_SHOWN: ("finds nothing", "find nothing"),
        NOT_KNOWN: ("cannot be judged by what was measured",) * 2,
    }
    counts = [(states.count(state), both) for state, both in words.items()]
    parts = [f"{count} {both[count > 1]}" for count, both in counts if count]
    return f"Of {counted(len(states), 'more check')}, {listed(parts)}" if parts else ""


def by_rule(found: Iterable[InWords]) -> list[list[InWords]]:
    """Findings of one rule that are as sure stand together: what to do is then said once."""
    return [list(group) for _, group in groupby(found, lambda one: (one.title, one.state, one.platform))]


def context(results: Results) -> dict[str, Any]:
    """What the part of the page is made of."""
    every = findings_of(results)
    shown = [each for each in every if each.found or (results.only_traced and each.suspected)]
    found = [in_words(results, each) for each in shown]
    known = {tried.trial.finding: tuple(sentences(tried)) for tried in trials(results.folder)}
    found = [replace(each, tried=known.get(each.id, ())) for each in found]
    return {
        "found": by_rule(found),
        "others": others(each for each in every if each not in shown) if found else "",
        "study": study_argument(results.study_file) if results.study_file else " STUDY.yaml",
    }


def first_proven(results: Results) -> str:
    """The first finding, if it is proven, and the command that tries its advice; masks stand beside their curves."""
    first = next((one for one in findings_of(results) if one.rule.when[0].table != ADVICE), None)
    if first is None or first.state != PROVEN:
        return ""
    words = in_words(results, first)
    return f"{words.title}: {words.sentence}" + (f" To try what helps: `{words.command}`." if words.command else "")
