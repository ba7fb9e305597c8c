"""`castmates paper`: figures, tables, methods and the crate, made from a made-up study."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from castmates.analysis.partitions.recommendation import CONFIRMED, recommendations
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.report.launch_record import LaunchRecord
from castmates.report.paper import methods
from castmates.report.paper.crate import About, Part, Run, metadata
from castmates.report.paper.paper import Folder, may_write
from castmates.report.paper.tables import paper_tables
from castmates.report.results import read_results
from castmates.results.columns.partitions import PARETO
from castmates.results.columns.study import frame
from castmates.study.schedule import launch_seed
from tests.unit import results_maker
from tests.unit.snapshots import assert_as_before
from tests.unit.test_recommendation import UNMANAGED, row

ABOUT = About("a study", "of nothing", "2026-01-01T00:00:00+00:00", "", (), "0.1.0")


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
    digests = {id: one["sha256"] for id, one in graph.items() if one["@type"] == "File"}
    assert all(sha256((written / unquote(id)).read_bytes()).hexdigest() == one for id, one in digests.items())


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


def test_each_launch_is_an_action_and_a_failed_one_says_so(graph):
    actions = [one for one in graph.values() if one["@type"] == "CreateAction" and one["@id"] != "#analysis"]
    assert len(actions) == 5
    assert sum(one["actionStatus"].endswith("FailedActionStatus") for one in actions) == 1
    assert all(graph[one["instrument"]["@id"]]["@type"] == "SoftwareApplication" for one in actions)
    assert all(graph[one["result"]["@id"]]["@type"] == "File" for one in actions)
    assert {one["@id"] for one in listed(graph["./"]["mentions"])} == {one["@id"] for one in actions} | {"#analysis"}


@pytest.mark.needs("rocrate")
def test_the_library_reads_the_crate(written):
    from rocrate.rocrate import ROCrate

    crate = ROCrate(written)
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


def test_the_next_run_removes_what_only_the_last_one_wrote_and_nothing_else(tmp_path):
    ours, theirs = tmp_path / "out", tmp_path / "notes"
    for rows in ({"a.txt": "1", "b.txt": "2"}, {"a.txt": "3"}):
        may_write(ours)
        folder = Folder(ours)
        for name, text in rows.items():
            folder.text(f"tables/{name}", text, "A text.")
        (ours / "paper.pdf").write_text("set by the user")
        folder.finish(metadata(ABOUT, folder.parts(), []))
    left = {str(file.relative_to(ours)): file.read_text() for file in ours.rglob("*.*") if file.suffix != ".json"}
    assert left == {"tables/a.txt": "3", "paper.pdf": "set by the user"}
    (theirs / ".git").mkdir(parents=True)
    may_write(theirs)
    (theirs / "paper.tex").write_text("years of work")
    with pytest.raises(CastmatesError, match=r"notes holds files \(paper.tex\), and no ro-crate-metadata.json that"):
        may_write(theirs)
    (theirs / "ro-crate-metadata.json").write_text("{}")
    with pytest.raises(CastmatesError, match="new or an empty folder"):
        may_write(theirs)


def test_a_crate_lists_nothing_outside_itself_for_removal(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("kept")
    (tmp_path / "out").mkdir()
    files = [{"@id": one, "@type": "File"} for one in ("../outside", str(outside))]
    (tmp_path / "out/ro-crate-metadata.json").write_text(json.dumps({"@graph": files}))
    Folder(tmp_path / "out").finish(metadata(ABOUT, [], []))
    assert outside.read_text() == "kept"


def test_each_run_has_its_inputs_and_its_launches_their_files():
    def action(crate, name):
        return next(one for one in crate["@graph"] if one["@id"] == f"#{name}")

    paths = ["s.yaml", "launches/c/1/launch.json", "tables/x.tex", "confirm/f/f.yaml",
             "confirm/f/launches/c/1/launch.json", "confirm/f/launches/c/1/windows.parquet"]  # fmt: skip
    measured = LaunchRecord({"status": "measured"})
    runs = [Run("", ["s.yaml"], {paths[1]: measured}), Run("confirm/f/", ["confirm/f/f.yaml"], {paths[4]: measured})]
    crate = metadata(ABOUT, [Part(path, 1, "", "") for path in paths], runs)
    assert action(crate, "launch-c/1")["result"] == {"@id": paths[1]}
    fresh = action(crate, "launch-confirm/f/c/1")
    assert (fresh["object"], fresh["result"]) == ({"@id": paths[3]}, [{"@id": path} for path in paths[4:]])
    assert action(crate, "analysis")["result"] == {"@id": "tables/x.tex"}
    assert {one["@id"] for one in action(crate, "analysis")["object"]} == {*paths} - {"tables/x.tex"}


def results(folder, **keys):
    return read_results(results_maker.make(folder, leads=("dlrm-train",), **keys))


def said(found):
    return methods.as_markdown(methods.paragraphs(found))


def test_methods_tell_what_was_recorded_and_no_more(tmp_path):
    of = {"a machine": said(results(tmp_path / "a")), "no machine": said(results(tmp_path / "b", machine={}))}
    assert "Synthetic CPU" not in of["no machine"]
    assert_as_before("methods", of)


def test_the_seed_is_told_only_where_the_launches_derive_from_it(tmp_path):
    folder = results_maker.make(tmp_path / "s", leads=("dlrm-train",))
    study = tmp_path / "s.yaml"
    study.write_text("name: s\nleads: [dlrm-train]\nantagonists: [stream]\nseed: 11\n")
    assert "seed" not in said(read_results(folder, study))
    for file in folder.glob("launches/*/*/launch.json"):
        record = json.loads(file.read_text())
        scenes = [scene["name"] for scene in record["spec"]["cohort"]["scenes"]]
        record["spec"]["seed"] = launch_seed(11, scenes, record["spec"]["number"])
        file.write_text(json.dumps(record))
    assert "derive from the seed 11" in said(read_results(folder, study))


def test_two_launches_are_marked_as_within_launch(tmp_path):
    text = paper_tables(results(tmp_path / "s", launches=2))["effects.tex"]
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


def test_methods_say_how_many_recommended_masks_were_measured_again(tmp_path):
    def told(*confirmed):
        rows = [UNMANAGED | {"mix": mix} for mix in ("a+b", "c+d")]
        rows += [row("split-4", 4, 1.0, 2.0, mix=mix) for mix in ("a+b", "c+d")]
        rows += [row("split-4", 4, 1.0, 2.0, stage=CONFIRMED, mix=mix) for mix in confirmed]
        advice = recommendations(frame(rows, PARETO), 3.0).assign(cache_ways=12)
        return said(replace(results(tmp_path / "-".join(("s", *confirmed))), recommendations=advice))

    assert "1 of 2 recommended masks was measured again in fresh launches" in told("a+b")
    assert "2 of 2 recommended masks were measured again in fresh launches" in told("a+b", "c+d")
    assert "measured again" not in told()
