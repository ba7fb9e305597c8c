"""How much of the memory's bandwidth antagonists took, and which pages members lay on: sentences for the page."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from castmates.analysis.effects.verdicts import NO_LOSS
from castmates.report.launch_record import LaunchRecord
from castmates.report.results import Results, records
from castmates.report.text.words import counted, listed, number, plain
from castmates.study.cache import rate_words
from castmates.study.memory_peak import COMMAND, Peak
from castmates.study.partitions.partitions import partitions_by_name
from castmates.study.spec import UNMANAGED

BUSY = 50.0  # per cent of the peak
ASIDE, ASIDE_BYTES = 0.1, 8 << 20  # of what a member has, that need not be on huge pages: libraries, stacks
ALIKE = 0.1  # by which the shares of launches may differ


def bandwidth(results: Results) -> list[str]:
    """What the antagonists of each pair took, beside the peak that was measured."""
    rows = _pairs(results)
    if not rows:
        return []
    peak = Peak.of(results.machine.memory_peak)
    if peak is None:
        return [f"{_taken(rows)}. How much of the memory's peak that is was not measured (`{COMMAND}`)."]
    sentences = [f"{_taken(rows)}. {_of_peak(peak)}"]
    idle = [row for row in rows if row["verdict"] == NO_LOSS and row["antagonists_peak_pct"] < BUSY]
    if idle:
        sentences.append(
            f"{listed([_pair(row) for row in idle])}: no loss, with memory that was mostly idle. It does not show what "
            "a busy memory would cost."
        )
    return sentences


def throttles(results: Results) -> list[str]:
    """What the throttles of the study leave of the rate of streams here, where that was measured."""
    tried, known = results.tried_rdt, partitions_by_name(results.plan)
    if tried is None:
        return []
    shares = [share for name in set(results.effects["partition"]) & set(known) for share in known[name].shares]
    steps = sorted({share.bandwidth for share in shares if share.bandwidth is not None})
    found = {step: tried.left_on(results.plan.cache, step) for step in steps}
    parts = [f"at {rate_words(step, tried.unit)}, {_left(left)}" for step, left in found.items() if left]
    if not parts:
        return []
    return [f"Throttles were measured at {tried.at}. Streams keep this share of their rate: {'; '.join(parts)}."]


def _left(percent: Mapping[int, float]) -> str:
    by_cores = [f"{number(value, 0)} % on {counted(cores, 'core')}" for cores, value in percent.items()]
    return listed(by_cores)


def _pairs(results: Results) -> list[dict[str, Any]]:
    effects = results.lead_effects("alone")
    if "antagonists_gb_s" not in effects:
        return []
    return [
        row for row in records(effects) if not math.isnan(row["antagonists_gb_s"]) and row["partition"] == UNMANAGED
    ]


def _taken(rows: Iterable[Mapping[str, Any]]) -> str:
    """By antagonists; beside several leads they may take more or less."""
    beside: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        beside.setdefault(plain(str(row["antagonists"])), []).append(row)
    parts = []
    for name, own in beside.items():
        share = _span([row["antagonists_peak_pct"] for row in own], 0)
        of_peak = share and f" ({share} % of the peak)"
        parts.append(f"{name} {_span([row['antagonists_gb_s'] for row in own], 1)} GB/s{of_peak}")
    return f"Antagonists read and wrote: {listed(parts)}"


def _span(values: Iterable[float], digits: int) -> str:
    """4.2 to 5.0, or one number; "" where some are not known."""
    texts = [number(value, digits) for value in sorted(values) if not math.isnan(value)]
    return " to ".join(dict.fromkeys([texts[0], texts[-1]])) if texts else ""


def _of_peak(peak: Peak) -> str:
    found = f"The peak of a package was measured at {peak.at}: {peak.highest() / 1e9:.3g} GB/s of reads"
    if peak.saturated:
        return f"{found}, by {peak.saturating} of {peak.cores} cores or fewer."
    cores = "core" if peak.cores == 1 else "cores"
    return f"{found} by {peak.cores} {cores}, all that there are here: memory may give more."


def _pair(row: Mapping[str, Any]) -> str:
    return f"{plain(str(row['lead']))} beside {plain(str(row['antagonists']))}"


def pages(launches: Sequence[LaunchRecord]) -> list[str]:
    """Members that were not on the pages that they asked for, and those whose pages differ between launches."""
    shares: dict[tuple[str, str], list[float]] = {}
    missed: list[str] = []
    for record in launches:
        for workload, wanted, resident, huge in record.pages:
            shares.setdefault((workload, wanted), []).append(huge / resident)
            if wanted == "huge" and resident - huge > max(ASIDE * resident, ASIDE_BYTES):
                missed.append(workload)
    differ = [
        f"{plain(name)} ({100 * min(found):.0f} to {100 * max(found):.0f} %)"
        for (name, _), found in shares.items()
        if max(found) - min(found) > ALIKE
    ]
    sentences = []
    if missed:
        sentences.append(
            f"{listed([plain(name) for name in dict.fromkeys(missed)])} asked for huge pages and did not have them in "
            "every launch: address translation is part of what it measured."
        )
    if differ:
        sentences.append(f"The share of memory on huge pages differs between launches: {listed(differ)}.")
    return sentences


def described(launches: Sequence[LaunchRecord]) -> str:
    """Which members lay on which pages, for the list of facts; "" where that was not recorded."""
    shares: dict[str, list[float]] = {}
    for record in launches:
        for workload, _, resident, huge in record.pages:
            shares.setdefault(workload, []).append(huge / resident)
    parts = [f"{plain(name)} {100 * sum(found) / len(found):.0f} %" for name, found in shares.items()]
    return ", ".join(parts)
