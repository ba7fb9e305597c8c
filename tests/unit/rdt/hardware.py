"""What the bundles that ship prove: a cell of docs/rdt.md's table is "hardware" where a record has it.

`CASTMATES_RENEW=1 pytest tests/unit/rdt/test_proofs.py` turns the cells after a bundle was put into castmates/machines.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from castmates import shipped
from castmates.linux import host
from castmates.machine.capture.capture import in_bundle, opened
from castmates.rdt.fake.recorded import replay
from castmates.study.rdt_trial import Tried

HEADING = "- `no`: the family has it"
NONE_SENT = " Nobody has sent one so far."
FAMILIES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {  # by column: Linux's intel-family.h, and AMD's models
    "Skylake-SP": lambda cpu: of(cpu, "GenuineIntel", 6, [85]),
    "Ice Lake": lambda cpu: of(cpu, "GenuineIntel", 6, [106, 108]),
    "Sapphire Rapids": lambda cpu: of(cpu, "GenuineIntel", 6, [143]),
    "Granite Rapids, SNC3": lambda cpu: of(cpu, "GenuineIntel", 6, [173]),
    "Rome": lambda cpu: of(cpu, "AuthenticAMD", 23, [49]),
    "Genoa": lambda cpu: of(cpu, "AuthenticAMD", 25, range(16, 32)),
    "Turin": lambda cpu: of(cpu, "AuthenticAMD", 26, range(32)),
    "Arm, MPAM": lambda cpu: "implementer" in cpu,
}
OF_TRIAL = {"MBA": "throttles", "CMT": "eviction", "MBM": "traffic"}  # features that a part of the trial verifies
Proved = dict[str, set[str]]  # by column: features


def of(cpu, vendor, family, models):
    return (cpu.get("vendor"), cpu.get("family")) == (vendor, family) and cpu.get("model") in models


def bundles() -> list[Path]:
    return [file for file in shipped.machines().values() if file.name.endswith(shipped.BUNDLE)]


def record(file: Path, name: str) -> dict[str, Any]:
    """A record of a bundle, where it was measured on hardware and not in the lab."""
    found = json.loads(in_bundle(file, name) or b"{}")
    return found if found.get("platform") == "measured" else {}


def proved_by(file: Path) -> set[str]:
    """The features that a bundle's records prove; a virtual machine's prove nothing."""
    with opened(file) as root:
        if "hypervisor" in (host.cpu_flags(root) or ()):
            return set()
    rdt, counters = record(file, "rdt.json"), record(file, "counters.json")
    if not rdt:
        return set()
    tried = Tried.of(rdt)
    features = {feature for feature, part in OF_TRIAL.items() if tried and tried.verifies(part)}
    features |= {"L3 CAT"} if tried and tried.masks_hold else set()
    if any(each.get("io_way", {}).get("verdict") == "tied" for each in rdt.get("caches", ())):
        features.add("tied I/O ways")
    verdicts = set(counters.get("events", {}).values())
    if "verified" in verdicts and "wrong" not in verdicts:
        features.add("event sets")
    with opened(file) as root:
        if replay(root).mounted:
            features.add("capture and replay")
    return features


def proved() -> Proved:
    """What all of them prove; one of a processor that has no column counts nowhere."""
    found: Proved = {}
    for file in bundles():
        with opened(file) as root:
            cpu = host.processor(root)
        for column in (column for column, fits in FAMILIES.items() if fits(cpu)):
            found.setdefault(column, set()).update(proved_by(file))
    return found


def turned(page: str, found: Proved) -> str:
    """The page with the cells of what was proved on hardware."""
    before, heading, after = page.partition(HEADING)
    lines = after.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith("|"))
    header = _cells(lines[at])
    for n in range(at + 2, lines.index("", at)):
        feature, *cells = _cells(lines[n])
        now = [
            "hardware" if any(feature.startswith(name) for name in found.get(column, ())) else cell
            for column, cell in zip(header[1:], cells, strict=True)
        ]
        lines[n] = f"| {' | '.join([feature, *now])} |"
    return (before.replace(NONE_SENT, "") if found else before) + heading + "\n".join(lines)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
