"""The recorded prints of perf and toplev, and the shares in those that were printed for people."""

import re
from pathlib import Path

from castmates.study.counter_keys import category

PRINTS = Path(__file__).resolve().parents[2] / "data" / "perf"
TOPLEV_NAMES = {  # of a version of before they were settled
    "fe_latency": "Fetch_Latency",
    "fe_bandwidth": "Fetch_Bandwidth",
    "branch_mispred": "Branch_Mispredicts",
    "base": "Light_Operations",
    "microcode_sequencer": "Heavy_Operations",
}


def read(name):
    return (PRINTS / name).read_text()


def for_machines():
    return sorted(
        str(file.relative_to(PRINTS)) for file in PRINTS.glob("*/*") if re.search(r"\.(json|csv)\.txt$", file.name)
    )


def shares_for_people(name):
    """`  12.3 %  tma_retiring` and toplev's `Retiring:  12.3 % Slots` -> {"Retiring": 0.123}."""
    found = {}
    for line in read(name).splitlines():
        perf = re.search(r"([\d.]+) (?:%|percent of slots)  (\w+)", line)
        toplev = re.search(r"S0-C0 +(?:\w+\.)?(\w+): +([\d.]+) % Slots", line)
        if not perf and not toplev:
            continue
        value, word = (perf[1], perf[2]) if perf else (toplev[2], toplev[1])
        known = category(TOPLEV_NAMES.get(word.lower(), word))
        assert known is not None, line
        found[known.name] = float(value) / 100
    return found
