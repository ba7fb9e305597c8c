"""How long requests to open-loop services take: rows of the page's table, and sentences on loads and limits."""

import math
from collections.abc import Mapping
from typing import Any

from castmates.analysis.explanations.evolution import QUANTILES
from castmates.analysis.explanations.services import INTERPOLATED
from castmates.report.results import Results, records
from castmates.report.text.latency import digits
from castmates.report.text.words import Quantity, counted, listed, number, plain
from castmates.study.spec import UNMANAGED

SPEED = (
    "The speed of an open-loop service is one over the 99th percentile (p99) of the latency of its requests: a loss of "
    "50 % is a p99 that is twice as long."
)
KINDS = ("alone", "corun")
Row = dict[str, Any]


def rows(results: Results) -> list[Row]:
    """A row for each service that leads, load, antagonists and partition."""
    found = []
    for row in records(results.services):
        if row["role"] == "lead" and row["kind"] in KINDS:
            share = f"{number(100 * row['answered_share'], 0 if row['answered_share'] < 0.995 else 1)} %"
            found.append(
                row | {"beside": where(row), "load": rate(row["load"]), "share": share}
                | {"cells": [_cell(row, name) for name in QUANTILES]}
            )  # fmt: skip
    return found


def where(row: Row) -> str:
    """Alone; beside stream; beside stream, under split-4."""
    antagonists = plain(row["antagonists"]).replace("+", " + ")
    place = f"beside {antagonists}" if antagonists else "alone"
    return place if row["partition"] == UNMANAGED else f"{place}, under {row['partition']}"


def rate(load: float) -> str:
    """20,000."""
    return f"{load:,.0f}" if load >= 10 else number(load)


def noted(results: Results, effect: Mapping[str, Any]) -> str:
    """What a line of the first table adds for a service: its p99 alone and here, and whether it is saturated."""
    if results.services.empty:
        return ""
    place = ["role", "platform", "machine", "partition"]
    leads = results.services[(results.services[place] == [effect[name] for name in place]).all(axis=1)]
    leads_alone = {row["member"]: row for row in records(leads[leads["kind"] == "alone"])}
    for row in records(leads[leads["mix"] == effect["mix"]]):
        share = number(100 * row["answered_share"], 0)
        alone = leads_alone.get(row["member"])
        if alone is not None and alone["saturated"]:
            there = number(100 * alone["answered_share"], 0)
            return f"saturated alone already: it answers {there} % of its requests there, and {share} % here"
        if row["saturated"]:
            return f"saturated: it answers {share} % of its requests, and latency grows for as long as that lasts"
        if not math.isnan(row["p99_ms"]) and not math.isnan(row["p99_ratio"]):
            ms, before = row["p99_ms"], row["p99_ms"] / row["p99_ratio"]
            return f"p99 {number(ms, digits(ms))} ms, alone {number(before, digits(before))} ms"
    return ""


def advice(results: Results) -> list[str]:
    """For each limit of the study: the highest load that keeps it, alone and beside each antagonist."""
    sentences = []
    for row in records(results.loads):
        limit = f"{row['quantile']} below {number(row['limit_ms'], digits(row['limit_ms']))} ms"
        who = f"{plain(row['service'])} {where(row)}"
        if math.isnan(row["load"]):
            sentences.append(f"{who}: no measured load keeps {limit}; {row['why']}.")
            continue
        high = number(row["load_ms_high"], digits(row["load_ms_high"]))
        first = f"{who} keeps {limit} up to {rate(row['load'])} requests a second (at most {high} ms at 95 %)"
        if row["source"] == INTERPOLATED:
            between = float(f"{row['interpolated']:.3g}")
            first += f", and up to about {rate(between)} (interpolated, not measured)"
        sentences.append(f"{first}; {row['why']}." if row["why"] else f"{first}.")
    return sentences


def unknown(results: Results) -> str:
    """Which launches of services have no latency, and why."""
    found: dict[str, list[str]] = {}
    for record in results.measured_records:
        for name, facts in record.requests.items():
            if facts.trouble or facts.lost:
                lost = f"{facts.lost:,} of {facts.records:,} records of requests were lost"
                found.setdefault(plain(name), []).append(facts.trouble or lost)
    return " ".join(
        f"{counted(len(why), 'launch')} of {name} {'has' if len(why) == 1 else 'have'} no latency: {why[0]}"
        f"{' in the first of them' * (len(why) > 1)}."
        for name, why in found.items()
    )


def saturated(results: Results) -> list[str]:
    """Which services did not keep up, and where."""
    found = [row for row in rows(results) if row["saturated"]]
    names = [f"{row['service']} at {row['load']} requests a second {row['beside']} ({row['share']})" for row in found]
    if not names:
        return []
    return [
        f"Saturated, with the share of requests that are answered: {listed(names)}. Latency grows there for as long as "
        "the load lasts: it would be a property of how long that was, and none of the service."
    ]


def _cell(row: Row, quantile: str) -> Row:
    ms = Quantity.of(row, f"{quantile}_ms", digits=digits(row[f"{quantile}_ms"]))
    if math.isnan(ms.value) or row["saturated"]:
        return {"ms": "–" if row["saturated"] else "not known", "value": "", "interval": "", "ratio": ""}
    ratio = Quantity.of(row, f"{quantile}_ratio", digits=2)
    times = "" if math.isnan(ratio.value) else f"× {ratio}"
    return {"ms": ms.number, "value": ms.value, "interval": ms.interval, "ratio": times}
