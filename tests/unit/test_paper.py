"""`castmates paper`: figures, tables, methods and the crate, made from a made-up study."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from castmates.cli import app
from castmates.errors import CastmatesError
from castmates.report import methods
from castmates.report.paper_tables import paper_tables
from castmates.report.read import read_results
from castmates.study.schedule import block_seed
from tests.unit import results_maker


def paper(*arguments):
    return CliRunner().invoke(app, ["paper", *map(str, arguments)])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("paper")
    study = results_maker.make(place / "a_study", leads=("dlrm-train",), failed=1, platform="modelled")
    done = paper(study, "--output", place / "out", "--licence", "CC-BY-4.0", "--author", "A. & B.")
    assert done.exit_code == 0, done.output
    return place / "out"


@pytest.fixture(scope="module")
def graph(written):
    content = json.loads((written / "ro-crate-metadata.json").read_text())
    return {one["@id"]: one for one in content["@graph"]}


def listed(value):
    return value if isinstance(value, list) else [value]


def test_the_crate_describes_every_file_and_no_other(written, graph):
    there = {str(file.relative_to(written)) for file in written.rglob("*") if file.is_file()}
    told = {unquote(id) for id, one in graph.items() if one["@type"] == "File"}
    assert told == there - {"ro-crate-metadata.json"}
    assert {unquote(one["@id"]) for one in graph["./"]["hasPart"]} == told
    assert {"figures/heatmap.pdf", "figures/heatmap.csv", "tables/effects.tex", "methods.md", "plan.json"} <= told
    sizes = {id: int(one["contentSize"]) for id, one in graph.items() if one["@type"] == "File"}
    assert all((written / unquote(id)).stat().st_size == size for id, size in sizes.items())


def test_whatever_the_crate_refers_to_is_in_it(graph):
    def references(value):
        if isinstance(value, dict):
            yield from (
                [value["@id"]] if set(value) == {"@id"} else (id for one in value.values() for id in references(one))
            )
        elif isinstance(value, list):
            yield from (id for one in value for id in references(one))

    outside = {id for id in references(list(graph.values())) if id not in graph}
    assert outside == {"https://w3id.org/ro/crate/1.1"}
    assert graph["./"]["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    assert graph["./"]["conformsTo"]["@id"] in graph


def test_each_block_is_an_action_and_a_failed_one_says_so(graph):
    actions = [one for one in graph.values() if one["@type"] == "CreateAction" and one["@id"] != "#analysis"]
    assert len(actions) == 5
    assert sum(one["actionStatus"].endswith("FailedActionStatus") for one in actions) == 1
    assert all(graph[one["instrument"]["@id"]]["@type"] == "SoftwareApplication" for one in actions)
    assert all(graph[one["result"]["@id"]]["@type"] == "File" for one in actions)
    assert {one["@id"] for one in listed(graph["./"]["mentions"])} == {one["@id"] for one in actions} | {"#analysis"}


def test_the_library_reads_the_crate(written):
    crate = pytest.importorskip("rocrate.rocrate").ROCrate(written)
    assert crate.root_dataset["name"] == "a_study"
    assert {entity.id for entity in crate.root_dataset["hasPart"]} == {entity.id for entity in crate.data_entities}


def test_what_is_not_measured_says_so_everywhere(written, graph):
    captions = re.findall(r"\\caption\{(.*)\}", "".join(file.read_text() for file in written.glob("tables/*.tex")))
    captions += re.findall(r"\\caption\{(.*)\}", (written / "paper.tex").read_text())
    assert len(captions) > 5
    assert all("odelled (not measured)" in caption for caption in captions)
    assert "is modelled (not measured)" in (written / "methods.tex").read_text()
    assert "This is not a measurement." in graph["./"]["description"]


def test_the_document_names_files_that_are_there_and_closes(written):
    text = (written / "paper.tex").read_text()
    for name in re.findall(r"\\includegraphics\[[^]]*\]\{(.*?)\}", text):
        assert (written / name).is_file(), name
    for name in re.findall(r"\\input\{(.*?)\}", text):
        assert (written / f"{name}.tex").is_file(), name
    for file in written.rglob("*.tex"):
        begun = re.findall(r"\\begin\{(\w+)\}", file.read_text())
        assert sorted(begun) == sorted(re.findall(r"\\end\{(\w+)\}", file.read_text())), file


def results(folder, **keys):
    return read_results(results_maker.make(folder, leads=("dlrm-train",), **keys))


def said(found):
    return methods.as_markdown(methods.paragraphs(found))


def test_methods_tell_what_was_recorded(tmp_path):
    text = said(results(tmp_path / "s"))
    for fact in (
        "was measured on the host synthetic-host",
        "processor Synthetic CPU @ 2.0 GHz",
        "L3, 32 MiB, 16 ways",
        "Each of 5 blocks launched",
        "3 rounds in a block, windows of 1 s and a settle time of 0.3 s",
        "dlrm-train (unit of progress: step; CPU 0)",
        "CPUs that may be used 0-7",
        "Not readable there: the frequency governor.",
        "frozen by signals",
        "most often for steal",
        "Python 3.11 and Linux 6.1.0-synthetic",
    ):
        assert fact in text, fact


def test_methods_claim_nothing_that_was_not_recorded(tmp_path):
    text = said(results(tmp_path / "s", machine={}))
    assert "Nothing was recorded of the machine." in text
    for word in (
        "Synthetic CPU",
        "hold 0 rounds",
        "governor",
        "turbo",
        "seed",
        "Masks",
        "Set for the blocks",
        "None",
        "nan",
    ):
        assert word not in text, word


def test_the_seed_is_told_only_where_the_blocks_derive_from_it(tmp_path):
    folder = results_maker.make(tmp_path / "s", leads=("dlrm-train",))
    study = tmp_path / "s.yaml"
    study.write_text("name: s\nleads: [dlrm-train]\nantagonists: [stream]\nseed: 11\n")
    assert "seed" not in said(read_results(folder, study))
    for file in folder.glob("blocks/*/*/block.json"):
        record = json.loads(file.read_text())
        record["spec"]["seed"] = block_seed(11, record["spec"]["company"]["id"], record["spec"]["number"])
        file.write_text(json.dumps(record))
    assert "derive from the seed 11" in said(read_results(folder, study))


def test_two_launches_are_marked_as_within_launch(tmp_path):
    text = paper_tables(results(tmp_path / "s", blocks=2))["effects.tex"]
    assert "within these launches only" in text
    assert r"\dag{}" in text


@pytest.mark.parametrize(("spoil", "sentence"), [("tables", "there is no folder 'tables' in it"), ("out", "is a file")])
def test_what_cannot_be_written_is_refused(tmp_path, spoil, sentence):
    folder = results_maker.make(tmp_path / "s", leads=("dlrm-train",))
    if spoil == "tables":
        (folder / "tables").rename(folder / "elsewhere")
    (tmp_path / "out").write_text("")
    with pytest.raises(CastmatesError, match=re.escape(sentence)):
        raise paper(folder, "--output", Path(tmp_path / "out")).exception
