"""Studies that are named on the command line: by their file or by their results; what is neither is one sentence."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.pipeline import snakemake
from castmates.pipeline.failures import discard
from castmates.results.find import find, study_file
from castmates.results.folder import StudyFolder
from castmates.study.plan_text import plan_text
from tests.unit.snapshots import assert_as_before
from tests.unit.windows_maker import cohort, mix, plan

PLAN = plan([cohort("c", mix("ranking@0", "stream@1"))], launches=1)
STUDY = "name: golden\nplatform: modelled\nmixes: [{lead: chase, antagonists: [stream]}]\n"
HOME = Path(__file__).parents[2]
OWN = (  # take a study's file
    "plan", "plan --pilot", "sweep", "sweep --retry", "sweep --confirm", "show --progress", "show --partitions",
    "internals run c/1",
)  # fmt: skip
ANY = ("paper", "show", "open", "compare {} results/golden")  # take what was measured


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A project with one study that has a plan and a failed launch."""
    monkeypatch.chdir(tmp_path)
    for folder in ("config/studies", "results/golden/launches/c/1", "folder"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("config/workloads", "envs"):
        (tmp_path / folder).symlink_to(HOME / folder)
    (tmp_path / "config/studies/mine.yaml").write_text(STUDY)
    (tmp_path / "results/golden/plan.json").write_text(plan_text(PLAN))
    (tmp_path / "results/golden/launches/c/1/launch.json").write_text(json.dumps({"status": "failed"}))
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "binary.yaml").write_bytes(bytes(range(128, 256)))
    return tmp_path


def ask(command, *arguments):
    whole = command if "{}" in command else f"{command} {{}}"
    return CliRunner().invoke(app, whole.format(*arguments).split())


@pytest.mark.parametrize("command", OWN + ANY)
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("folder", "folder: there is no plan.json in it; give a study file, or a folder results/<study>."),
        ("missing.yaml", "missing.yaml: there is neither a study file nor a results folder of this name; "),
        ("empty.yaml", "empty.yaml: expected keys such as name, title, question, found nothing."),
        ("binary.yaml", "binary.yaml: the study cannot be read: "),
    ],
)
def test_what_is_no_study_is_one_sentence_everywhere(command, given, sentence):
    done = ask(command, given)
    assert done.exit_code == 1
    assert isinstance(done.exception, CastmatesError)
    assert str(done.exception).startswith(sentence)
    assert "\n" not in str(done.exception)


def test_a_results_folder_stands_for_its_study_file(project):
    assert list(discard(study_file(project / "results/golden"), changed=False)) == [
        "discarded (failed): results/golden/launches/c/1", "1 launch discarded in results/golden",
    ]  # fmt: skip
    with pytest.raises(CastmatesError, match=r"config/studies/mine.yaml: no partition was measured"):
        raise ask("show {} --partitions", "results/golden").exception


@pytest.mark.parametrize(
    "text", ["name: golden", 'name:  "golden"  # mine\nleads: [a]\n', "{name: golden}", "title: x\r\nname: golden\r\n"]
)
def test_the_name_is_read_as_yaml_reads_it(project, text):
    (project / "config/studies/mine.yaml").write_text(text, newline="")
    assert str(study_file(project / "results/golden")) == "config/studies/mine.yaml"


def test_what_only_looks_like_the_name_is_not_taken(project):
    (project / "config/one.yaml").write_text("name: other\nquestion: |\n  Is\n  name: golden\n  found?\n")
    (project / "config/two.yaml").write_text("name: golden\nname: twice\n")
    (project / "config/three.yaml").write_bytes(b"\xff\xfename: golden\n")
    (project / "config/four.yaml").mkdir()
    assert str(find(project / "results/golden")[1]) == "config/studies/mine.yaml"


def test_no_file_or_several_of_that_name_are_told(project):
    (project / "config/again.yaml").write_text("name: golden\n")
    with pytest.raises(
        CastmatesError,
        match=r"the study files config/again.yaml and config/studies/mine.yaml all have the name 'golden'; give",
    ):
        raise ask("plan", "results/golden").exception
    assert find(project / "results/golden") == (StudyFolder(project / "results/golden"), None)
    (project / "results/golden").rename(project / "results/other")
    with pytest.raises(CastmatesError, match="no study file here has the name 'other'"):
        raise ask("plan", "results/other").exception


def test_a_copy_of_results_is_not_taken_for_the_study_s_own(project):
    (project / "results/golden").rename(project / "folder/golden")
    with pytest.raises(CastmatesError, match=r"results of config/studies/mine.yaml are in results/golden"):
        raise ask("sweep {} --retry", "folder/golden").exception
    assert (project / "folder/golden/launches/c/1").is_dir()
    assert str(find(project / "folder/golden")[1]) == "config/studies/mine.yaml"


def test_confirming_studies_are_found_too(project):
    (project / "results/golden/confirm").mkdir()
    (project / "results/golden/confirm/golden-confirm-1.yaml").write_text("name: golden-confirm-1\n")
    (project / "results/golden-confirm-1").mkdir()
    (project / "results/golden-confirm-1/plan.json").write_text("{}")
    assert study_file(project / "results/golden-confirm-1").name == "golden-confirm-1.yaml"


FULL = [
    ("{cores: 4}", "distance: [smt]"), ("{cores: 4}", "distance: [core, other-socket]"),
    ("{cores: 4, sockets: 2, domains: 2}", "distance: [socket]"), ("{cores: 4}", "distance: [core], count: [40]"),
    ("{cores: 4}", "count: [40]"),
]  # fmt: skip


@pytest.mark.parametrize("command", ["plan", "sweep"])
def test_antagonists_that_find_no_place_are_one_sentence_before_anything_starts(command, project, monkeypatch):
    monkeypatch.setattr(snakemake, "sweep", lambda *_: pytest.fail("Snakemake was started"))

    def said(model, rule):
        mix = f"{{lead: chase, antagonists: [stream], {rule}}}"
        (project / "far.yaml").write_text(f"name: far\nplatform: modelled\nmodel: {model}\nmixes: [{mix}]\n")
        done = ask(command, "far.yaml")
        assert (done.exit_code, type(done.exception)) == (1, CastmatesError)
        return str(done.exception)

    assert_as_before("no-place", {f"{model} {rule}": said(model, rule) for model, rule in FULL})


def test_fewer_antagonists_are_measured_where_more_find_no_place(project):
    mix = "{lead: chase, antagonists: [stream], count: [1, 40]}"
    (project / "many.yaml").write_text(f"name: many\nplatform: modelled\nmodel: {{cores: 4}}\nmixes: [{mix}]\n")
    outline = json.loads(ask("plan {} --format json", "many.yaml").output)
    assert outline["notes"] == [
        "mixes: left out: the mix chase+40 stream asks for 41 cores (1 + 40 × 1), but only 4 CPUs (0-3) may be used "
        "here."
    ]
    assert [row["beside"] for row in outline["rows"]] == [["stream"]]
