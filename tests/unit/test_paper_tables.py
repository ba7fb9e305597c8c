"""The tables and methods of a paper, from the frozen modelled study: their numbers are those of its own tables."""

import json
import re
import tarfile

import pytest

from castmates.estimate import write_tables
from castmates.project import read_plan
from castmates.report import methods
from castmates.report.paper_tables import paper_tables
from castmates.report.read import read_results
from tests.golden.report import BLOCKS, MARGIN, STUDY


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(BLOCKS) as archive:
        archive.extractall(folder, filter="data")
    machine = json.loads((folder / "machine.json").read_bytes())
    write_tables(read_plan(folder / "plan.json"), folder / "blocks", MARGIN, folder / "tables", machine)
    return read_results(folder, STUDY)


@pytest.fixture(scope="module")
def tables(results):
    return paper_tables(results)


def cells(text):
    lines = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r"\\")]
    rows = [re.split(r"(?<!\\)&", line.replace("{[}", "[").replace("$-$", "-")) for line in lines]
    return [[cell.strip() for cell in row] for row in rows if row[0].strip() not in ("Member", "Partition", "Mix")]


def numbers(row):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", " ".join(row[3:5]))]


def test_the_effects_are_those_of_the_study(results, tables):
    effects = results.effects[(results.effects["role"] == "lead") & (results.effects["partition"] == "unmanaged")]
    found = cells(tables["effects.tex"])
    assert len(found) == len(effects) > 0
    for row, (_, effect) in zip(found, effects.iterrows(), strict=True):
        wanted = [effect[f"degradation_{end}"] for end in ("pct", "low", "high")]
        assert numbers(row) == pytest.approx(wanted, abs=0.051)
        assert row[-2:] == [str(effect["blocks"]), effect["verdict"]]


def test_every_partition_of_every_mix_is_in_a_table(results, tables):
    under = results.effects[(results.effects["partition"] != "unmanaged") & (results.effects["role"] == "lead")]
    rows = [row for name, text in tables.items() if name.startswith("partitions-") for row in cells(text)]
    assert len(rows) == len(under) > 0


def test_attribution_and_what_members_give_together_are_there(results, tables):
    found = cells(tables["attribution.tex"])
    totals = [row for row in found if row[1] == "total"]
    known = results.attribution[(results.attribution["part"] == "total") & (results.attribution["blocks"] > 0)]
    assert [float(row[2].replace("$-$", "-")) for row in totals] == pytest.approx(known["points"].tolist(), abs=0.051)
    assert {row[-1] for row in found} <= {"a loss", "a gain", "equivalent", "unclear", "too few blocks", "no data"}
    assert (
        len(cells(tables["system.tex"]))
        == results.system.loc[results.system["partition"] == "unmanaged", "mix"].nunique()
    )


def test_all_captions_say_that_nothing_was_measured(tables):
    captions = [line for text in tables.values() for line in text.splitlines() if line.startswith(r"\caption")]
    assert len(captions) >= len(tables) > 5
    assert all("Modelled (not measured)" in caption for caption in captions)


def test_the_methods_have_the_partitions_and_the_seed(results):
    text = methods.as_markdown(methods.paragraphs(results))
    names = set(results.effects["partition"]) - {"unmanaged"}
    assert f"shared out by resctrl in {len(names)} partitions" in text
    assert f"derive from the seed {results.study.seed}." in text
    assert "No program was started" in text
    assert "bound to the CPUs" not in text
