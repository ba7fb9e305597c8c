"""How long steps take: rows of the page's table, and why some quantiles are left out."""

from typing import Any

import pandas as pd

from castmates.analysis.explanations.evolution import QUANTILES, fewest_steps
from castmates.analysis.explanations.phases import STEP
from castmates.report.results import Results, records
from castmates.report.text.words import WORDS, Quantity, counted, listed, plain
from castmates.study.class_names import without_class
from castmates.study.mitigations import BETWEEN
from castmates.study.spec import UNMANAGED

Row = dict[str, Any]
TOO_FEW, LEFT_OUT = "too few steps", "left out"


def rows(results: Results) -> list[Row]:
    """A row per member, scene, part of a step and platform, with a cell for each quantile."""
    lines: dict[tuple[str, str, str, str], Row] = {}
    table = results.latency
    for quantile in records(table[table["what"] != "request"]):
        row = lines.setdefault(
            (quantile["member"], quantile["scene"], quantile["platform"], quantile["what"]),
            quantile | {"cells": {}, "launches": quantile["launches"] + quantile["launches_few"]},
        )
        row["cells"][quantile["quantile"]] = _cell(quantile)
    return [
        row | {"cells": [row["cells"][name] for name in QUANTILES], "step": _step(row), "beside": _scene(row)}
        for row in lines.values()
    ]


def of_steps(results: Results) -> pd.DataFrame:
    """The rows of the table that are of whole steps; requests to services have a separate table."""
    return results.latency[results.latency["what"] == STEP]


def needed() -> str:
    """How many steps of a launch each quantile needs."""
    return listed([str(fewest_steps(share)) for share in QUANTILES.values()])


def refusals(results: Results) -> list[str]:
    """For each member and quantile, in how many scenes it is left out, and why in the first of them."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in records(of_steps(results)):
        groups.setdefault((row["member"], row["quantile"]), []).append(row)
    sentences = []
    for (member, quantile), scenes in groups.items():
        if refused := [row for row in scenes if row["refused"]]:
            sentences.append(
                f"{quantile} of {plain(member)} is left out in {_which(len(refused), len(scenes))}; "
                f"{_scene(refused[0])}: {refused[0]['refused']}."
            )
    return sentences


def _which(refused: int, scenes: int) -> str:
    """In its only scene; in both scenes; in all 3 scenes; in 2 of 3 scenes."""
    if refused < scenes:
        return f"{refused} of {counted(scenes, 'scene')}"
    return {1: "its only scene", 2: "both scenes"}.get(scenes, f"all {scenes} scenes")


def _cell(row: Row) -> Row:
    if row["refused"]:
        blank = dict.fromkeys(("value", "ms_interval", "ratio", "ratio_interval", "left"), "")
        return blank | {"ms": LEFT_OUT if "units" in row["refused"] else TOO_FEW}
    ms, ratio = Quantity.of(row, "ms", digits=digits(row["ms"])), Quantity.of(row, "ratio", digits=3)
    return {
        "value": ms.value,
        "ms": ms.number,
        "ms_interval": ms.interval,
        "ratio": f"× {ratio.number}" if row["launches_paired"] else "",
        "ratio_interval": ratio.interval,
        "left": f"{row['launches']} launches" if row["launches_few"] else "",
    }


def digits(ms: float) -> int:
    """Decimals that leave about four digits."""
    return 4 if ms < 1 else 3 if ms < 10 else 2 if ms < 100 else 1


def _step(row: Row) -> str:
    """What a step of the member is, or a phase of it: 1 step, 4,096 loads, prefill phase of 1 request."""
    whole = counted(int(row["units"]), str(row["unit"])) if row["units"] == row["units"] else str(row["unit"])
    return whole if row["what"] == STEP else f"{row['what']} of {whole}"


def _scene(row: Row) -> str:
    """Where it ran: alone; placebo on 2; beside stream; beside stream, under split-4."""
    kind, _, cpus = str(row["scene"]).partition("@")[0].partition(":")
    if row["kind"] == "corun":
        together, _, place = str(row["mix"]).partition(BETWEEN)
        others = without_class(plain(together)).split("+")
        others.remove(without_class(row["workload"]))
        where = f"beside {' and '.join(others)}" + f" ({WORDS.get(place, place)})" * bool(place)
    else:
        where = f"placebo on {cpus}" if row["kind"] == "placebo" else kind.removeprefix("antagonist-")
    return where if row["partition"] == UNMANAGED else f"{where}, under {row['partition']}"
