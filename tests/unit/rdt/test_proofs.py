"""The table of docs/rdt.md, of what was proved where: it follows the fake's machines, and its proofs exist."""

import importlib
import json
import os
import re
import tarfile
import tempfile
from pathlib import Path

import pytest

from castmates import shipped
from tests.lab.conftest import AT_LANDINGS
from tests.lab.shapes import FAULTS, SAPPHIRE_RAPIDS, SHAPES, SKYLAKE_SP
from tests.lab.test_faulty_sweeps import EXPECTED as SWEPT
from tests.lab.test_verify_rdt import EXPECTED
from tests.unit.counters.processors import NAMES
from tests.unit.rdt import from_dumps, hardware, owned
from tests.unit.rdt.cpuid import CAT, MON, PARTS, QOS

PAGE = Path(__file__).parents[3] / "docs/rdt.md"
COLUMNS = {
    "Skylake-SP": "skylake-sp",
    "Ice Lake": "ice-lake",
    "Sapphire Rapids": "sapphire-rapids",
    "Granite Rapids, SNC3": "granite-rapids-snc3",
    "Rome": "rome",
    "Genoa": "genoa",
    "Turin": "turin",
    "hybrid client": "hybrid-client",
    "Arm, MPAM": "arm-mpam",
}
PERF_LISTS = {
    "ice-lake": "ice-lake-sp",
    "granite-rapids-snc3": "granite-rapids",
    "rome": "zen2",
    "genoa": "zen4",
    "turin": "zen5",
    "hybrid-client": "alder-lake",
    "arm-mpam": "neoverse-v2",
}
# Which machines have a feature, by the words that its row begins with.
HAS = {
    "L3 CAT": lambda shape: bool(shape.ways),
    "CDP": lambda shape: bool(shape.ways) and shape.cdp,
    "L2 CAT": lambda shape: shape.second is not None,
    "MBA": lambda shape: shape.throttle is not None,
    "SMBA": lambda shape: shape.slow is not None,
    "CMT": lambda shape: "llc_occupancy" in shape.events,
    "MBM": lambda shape: "mbm_total_bytes" in shape.events,
    "ABMC": lambda shape: bool(shape.mbm_counters),
    "SNC": lambda shape: bool(shape.nodes),
    "io_alloc": lambda shape: shape.io_alloc,
    "what Linux hides": lambda shape: shape is owned.MACHINES["skylake-sp"].shape,
    "registers": lambda shape: bool(shape.ways) and not shape.is_arm,
    "tied I/O ways": lambda shape: bool(shape.tied),
    "pqos": lambda shape: bool(shape.ways),
    "event sets": bool,
    "doctor's rows": bool,
    "capture and replay": bool,
}
# The leaves that announce a feature, whichever the maker.
LEAVES = {
    "L3 CAT": [(CAT, 1)],
    "CDP": [(CAT, 1)],
    "L2 CAT": [(CAT, 2)],
    "MBA": [(CAT, 3), (QOS, 1)],
    "SMBA": [(QOS, 2)],
    "CMT": [(MON, 1)],
    "MBM": [(MON, 1)],
    "ABMC": [(QOS, 5)],
    "io_alloc": [(QOS, 0)],
}
FAMILY_OF_MODEL = {
    SHAPES["linux-6.1"].model: "ice-lake",
    SKYLAKE_SP: "skylake-sp",
    SAPPHIRE_RAPIDS: "sapphire-rapids",
}


def rows(heading):
    """The rows of the table that follows a line, cell by cell."""
    lines = PAGE.read_text().split(heading, 1)[1].splitlines()
    table = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            break
    return table[0], table[2:]


HEADER, CELLS = rows(hardware.HEADING)
PROOFS = {row[0]: [re.findall(r"`(tests/[^`]+)`", cell) for cell in row[1:]] for row in rows("The proofs (")[1]}


def feature_of(row):
    return next(feature for feature in HAS if row[0].startswith(feature))


def marks(node):
    file, _, name = node.partition("::")
    test = getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), name)
    return {mark.name: mark.args for mark in getattr(test, "pytestmark", ())}, test


def families_in_lab(node):
    return {FAMILY_OF_MODEL.get(SHAPES[machine].model) for machine in marks(node)[0]["machines"]}


def is_dumped(feature, machine):
    """Whether registers of a real part say what the shape has of it; with clusters the ids are inferred."""
    leaves = [leaf for name, leaves in PARTS.items() if machine.dump and machine.dump in name for leaf in leaves]
    return bool(set(LEAVES.get(feature, ())) & {leaf for leaf in leaves if leaf[0] != MON or not machine.shape.nodes})


def tried_on(node, family):
    """Whether a test on shapes or lists takes this machine: by its parameters, or by its words."""
    found, test = marks(node)
    _, values = found.get("parametrize", ("", ()))
    names = {getattr(value, "values", [value])[0] for value in values}
    if "tests/unit/counters" in node:
        return PERF_LISTS.get(family, family) in NAMES
    source = Path(test.__code__.co_filename).read_text().split(f"def {test.__name__}(")[1].split("\n\n\n")[0]
    return family in names or family in source or family.replace("-", "_").upper() in source


def test_every_machine_of_the_fake_has_a_column_and_every_feature_one_row_and_its_proofs():
    assert ["feature", *COLUMNS] == HEADER
    assert set(COLUMNS.values()) == set(owned.MACHINES)
    assert sorted(map(feature_of, CELLS)) == sorted(HAS)
    assert PROOFS.keys() - {"feature"} == HAS.keys()


@pytest.mark.parametrize("row", CELLS, ids=lambda row: row[0].split(":")[0])
def test_cells_follow_what_the_machines_have_and_the_tests_that_are_named(row):
    feature, on_hardware = feature_of(row), hardware.proved()
    in_lab, on_shapes = PROOFS[feature]
    for column, cell in zip(HEADER[1:], row[1:], strict=True):
        family = COLUMNS[column]
        assert (cell != "–") == HAS[feature](owned.MACHINES[family].shape), f"{feature}, {column}"
        assert cell in ("hardware", "lab", "real CPUID", "shape", "list", "no", "–")
        assert (cell == "hardware") == (feature in on_hardware.get(column, ())), f"{feature}, {column}"
        if cell in ("real CPUID", "shape"):
            assert (cell == "real CPUID") == is_dumped(feature, owned.MACHINES[family]), f"{feature}, {column}"
        if cell == "lab":
            assert any(family in families_in_lab(node) for node in in_lab), f"{feature}, {column}"
        if cell in ("real CPUID", "shape", "list"):
            assert any(tried_on(node, family) for node in on_shapes), f"{feature}, {column}"
        if cell == "no":
            assert not any(family in families_in_lab(node) for node in in_lab), f"{feature}, {column}: it is proved"


def test_the_page_has_what_bundles_prove():
    page = PAGE.read_text()
    if os.environ.get("CASTMATES_RENEW"):
        PAGE.write_text(hardware.turned(page, hardware.proved()))
    assert PAGE.read_text() == hardware.turned(page, hardware.proved())
    assert (hardware.NONE_SENT in page) == (not hardware.bundles())


def records(platform="measured", isolation="isolated"):
    verdicts = {"masks": "works", "isolation": isolation, "throttles": "no effect", "traffic": "agrees"}
    parts = {part: {"verdict": verdict, "said": "."} for part, verdict in verdicts.items()}
    caches = [{"llc": 0, "io_way": {"verdict": "tied"}}]
    return {
        "rdt.json": {"at": "now", "platform": platform, "parts": parts, "caches": caches},
        "counters.json": {"platform": platform, "events": {"instructions": "verified", "cycles": "not checked"}},
    }


def bundle(file, records):
    """What somebody may send of an Ice Lake."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(file, "w:gz") as packed:
        from_dumps.write("ice-lake", Path(folder) / "machine.json.gz")
        for name, content in records.items():
            (Path(folder) / name).write_text(json.dumps(content))
        packed.add(folder, "bundle")


@pytest.mark.parametrize(
    ("sent", "turns"),
    [
        (records(), {"L3 CAT", "MBM", "tied I/O ways", "event sets", "capture and replay"}),
        (records(isolation="not isolated"), {"MBM", "tied I/O ways", "event sets", "capture and replay"}),
        (records(platform="emulated"), set()),
        ({}, set()),
    ],
)
def test_a_bundle_that_ships_turns_the_cells_of_its_family(sent, turns, tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "MACHINES", tmp_path)
    bundle(tmp_path / "their-server.tar.gz", sent)
    before, after = PAGE.read_text(), hardware.turned(PAGE.read_text(), hardware.proved())
    changed = [line for line in after.splitlines() if line not in before.splitlines() and line.startswith("|")]
    assert {feature_of([line.strip("| ")]) for line in changed} == turns
    ice_lake = 1 + HEADER[1:].index("Ice Lake")
    for line in changed:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert [n for n, cell in enumerate(cells) if cell == "hardware"] == [ice_lake]
    assert hardware.turned(before, {}) == before


def test_tests_in_the_lab_that_prove_something_run_at_landings():
    """A proof must not wait for the longest hours: each has a machine that is not left out (tests/lab/conftest.py)."""
    for node in {node for in_lab, _ in PROOFS.values() for node in in_lab}:
        file = Path(node.partition("::")[0]).stem
        machines = set(marks(node)[0]["machines"])
        assert machines & set(AT_LANDINGS.get(file, machines)), node


def test_every_fault_of_a_processor_has_a_row_and_what_must_be_said_of_it():
    """None is left out: a row has verdicts and, in words, who else shows the fault or why nothing can."""
    _, table = rows("### Faults, and what finds them")
    said = {fault: ", ".join(f"{part}: {word}" for part, word in parts.items()) for fault, parts in EXPECTED.items()}
    assert [row[:3] for row in table] == [[f"`{name}`", f"`{FAULTS[name]}`", said[name]] for name in FAULTS]
    assert set(SWEPT) == set(FAULTS)
    assert all(row[3] and said[row[0].strip("`")] for row in table)
    states = {fault: {part.partition(":")[0] for part in held.split("; ")} for fault, (_, held, _, _) in SWEPT.items()}
    telling = {fault: found - {"as asked"} for fault, found in states.items()}
    assert all(f"`{state}`" in row[3] for row in table for state in telling[row[0].strip("`")])
