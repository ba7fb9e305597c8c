"""The folder of `castmates paper`: whose it is, and what is removed from it and what never."""

import json
import re
from hashlib import sha256

import pytest

from castmates.errors import CastmatesError
from castmates.report.paper.crate import About, Run, begun, metadata
from castmates.report.paper.paper import FILES, FOLDERS, Folder, may_write
from castmates.results.published import METADATA
from tests.unit import results_maker
from tests.unit.test_paper import paper

ABOUT = About("a study", "of nothing", "2026-01-01T00:00:00+00:00", "", (), "0.1.0")


def write(place, texts):
    """As `castmates paper` writes a folder; a.yaml is the study file."""
    may_write(place)
    folder = Folder(place)
    folder.begin(begun(ABOUT))
    for name, text in texts.items():
        folder.text(name, text, "A text.")
    folder.finish(metadata(ABOUT, folder.parts(), [Run("", [name for name in texts if name == "a.yaml"], {})]))


def describe(place, name, text, *, made=False):
    """What a user adds: a file, and its entity in our crate."""
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text(text)
    crate = json.loads((place / METADATA).read_text())
    crate["@graph"].append({"@id": name, "@type": "File", "sha256": sha256(text.encode()).hexdigest()})
    if made:
        next(one for one in crate["@graph"] if one["@id"] == "#analysis")["result"].append({"@id": name})
    (place / METADATA).write_text(json.dumps(crate))


def files(place):
    return {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()} - {METADATA}


def test_what_a_user_adds_to_the_crate_stays(tmp_path):
    write(tmp_path / "out", {"paper.tex": "1", "tables/old.tex": "1", "figures/old.csv": "1"})
    describe(tmp_path / "out", "notes.md", "years of work")
    describe(tmp_path / "out", "thesis.tex", "years of work", made=True)
    describe(tmp_path / "out", "data/mine.csv", "1")
    describe(tmp_path / "out", "mine/a.csv", "1", made=True)
    write(tmp_path / "out", {"paper.tex": "2"})
    assert files(tmp_path / "out") == {"paper.tex", "notes.md", "thesis.tex", "data/mine.csv", "mine/a.csv"}


def test_what_was_changed_since_stays_and_the_rest_of_another_study_goes(tmp_path):
    write(tmp_path / "out", {"a.yaml": "name: a", "methods.md": "1", "tables/a.tex": "1", "tables/b.tex": "1"})
    (tmp_path / "out/tables/b.tex").write_text("set by hand")
    write(tmp_path / "out", {"paper.tex": "2"})
    assert files(tmp_path / "out") == {"paper.tex", "tables/b.tex"}


def entity(id, kind, **more):
    return {"@id": id, "@type": kind, **more}


FOREIGN = {
    "no action": [entity("#castmates-1", "SoftwareApplication", name="Castmates")],
    "another's analysis": [
        entity("#castmates-1", "SoftwareApplication", name="Castmates"),
        entity("#analysis", "CreateAction", instrument={"@id": "#mine"}),
        entity("#mine", "SoftwareApplication", name="Castmates"),
    ],
    "no tool": [entity("#analysis", "CreateAction", instrument={"@id": "#castmates-1"})],
    "no graph": None,
}


@pytest.mark.parametrize("graph", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_crate_that_names_castmates_is_refused_and_nothing_is_removed(tmp_path, graph):
    (tmp_path / "thesis.tex").write_text("years of work")
    digest = sha256(b"years of work").hexdigest()
    crate = {"@graph": graph and [*graph, entity("thesis.tex", "File", sha256=digest)], "name": "Castmates"}
    (tmp_path / METADATA).write_text(json.dumps(crate, indent=2))
    with pytest.raises(CastmatesError, match="new or an empty folder"):
        may_write(tmp_path)
    Folder(tmp_path).finish(metadata(ABOUT, [], []))
    assert (tmp_path / "thesis.tex").exists()


def test_a_paper_that_was_interrupted_is_written_by_the_same_command(tmp_path, monkeypatch):
    study = results_maker.make(tmp_path / "a_study", leads=("dlrm-train",), platform="modelled")
    with monkeypatch.context() as patch:
        patch.setattr("castmates.report.paper.paper.draw_figure", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        paper(study, "--output", tmp_path / "out")
    assert "plan.json" in files(tmp_path / "out")
    assert not (tmp_path / "out/paper.tex").exists()
    monkeypatch.setattr("castmates.report.paper.paper.draw_figure", drawn)
    done = paper(study, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    there = files(tmp_path / "out")
    assert "paper.tex" in there
    assert {name.split("/")[0] for name in there if "/" in name} <= {*FOLDERS}
    assert {name for name in there if "/" not in name and not name.endswith(".yaml")} <= {*FILES}


def drawn(_name, _results, stem, _printed):
    """In place of figures, which take long."""
    stem.parent.mkdir(exist_ok=True)
    for suffix in ("svg", "pdf", "png", "csv", "txt", "alt.txt"):
        stem.with_name(f"{stem.name}.{suffix}").write_text("drawn")


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path):
    study = results_maker.make(tmp_path / "a_study", leads=("dlrm-train",), platform="modelled")
    write(tmp_path / "out", {"paper.tex": "1"})
    (tmp_path / "out/plan.json").mkdir()
    sentence = f"{tmp_path}/out/plan.json cannot be written (Is a directory): make room or give write access there"
    with pytest.raises(CastmatesError, match=re.escape(sentence)):
        raise paper(study, "--output", tmp_path / "out").exception
