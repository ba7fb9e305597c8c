"""What comes from a stranger (a study, results, a crate) is data; docs/privileges.md lists what that means."""

import ast
import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from rich.table import Table
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.english import TURNING, printable
from castmates.errors import CastmatesError
from castmates.pipeline.snakemake import hold_sweep_lock
from castmates.report.figures.index import FIGURES
from castmates.report.page.common_parts import inline_svg
from castmates.report.page.page import page
from castmates.report.paper.paper import Folder, write_paper
from castmates.report.results import read_results
from castmates.results.bundles import found_launches
from castmates.results.columns.launch import LAUNCH_TABLES, table_file
from castmates.results.folder import StudyFolder
from castmates.results.records import forget_useless, refuse_links
from castmates.runner.processes.member_log import last_lines
from castmates.study.model import Study
from castmates.study.reading import read_keys
from castmates.study.spec import PROTOCOL
from castmates.terminal.console import SafeConsole
from castmates.workloads import identity
from castmates.workloads.written import missing_packages
from tests.unit import drawings, results_maker, study_folder
from tests.unit.test_page import parsed
from tests.unit.windows_maker import cohort, mix, plan, written

ROOT = Path(__file__).resolve().parents[2]
EVIL = "<script>alert(1)</script>"
STEERING = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202etxt"  # title, colour, an eight-bit erase, text turned around
OUTSIDE = ["..", "../../outside", "/tmp/outside", "a/../../outside", "", ".", "a\0b"]


# A study: its names and titles.


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/b", "..", ".hidden", "a b", "a\nb", "A"])
def test_a_study_cannot_name_a_folder_outside_of_results(name):
    with pytest.raises(CastmatesError, match="name"):
        read_keys(Study, f"name: {json.dumps(name)}\n", "study.yaml")


def test_a_title_does_not_steer_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    study = tmp_path / "study.yaml"
    study.write_text(
        f"name: stranger\ntitle: {json.dumps(STEERING)}\nleads: [chase]\nantagonists: [stream]\n", encoding="utf-8"
    )
    done = CliRunner().invoke(app, ["plan", str(study)])
    assert done.exit_code == 0, done.output
    assert "owned" in done.output
    assert not {*STEERING} & {"\x1b", "\x07", "\x9b", "\u202e"} & {*done.output}


def test_nothing_that_is_printed_steers_the_terminal(capsys):
    console = SafeConsole(force_terminal=True, color_system="truecolor", width=200)
    table = Table()
    table.add_column(STEERING)
    table.add_row(STEERING)
    with console.capture() as held:
        console.print(STEERING, table, style="bold red", markup=False)
    text = re.sub(r"\x1b\[[\d;]*m", "", held.get())  # our own colours
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*text}
    assert printable("tab\tend\n ✓ −…") == "tab\tend\n ✓ −…"
    assert printable(TURNING + "\r\0\x7f").strip("\N{REPLACEMENT CHARACTER}") == ""


def test_the_last_words_of_a_program_do_not_steer_the_terminal(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"\x1b]0;owned\x07done\n")
    assert last_lines(log, 1) == ["\N{REPLACEMENT CHARACTER}]0;owned\N{REPLACEMENT CHARACTER}done"]


# A catalogue: only installed programs are asked for their version, and only compilers for their parts.


@pytest.fixture
def planted(tmp_path):
    """Programs of a stranger's that look like a package's and leave a mark where they are run."""
    for name in ("xz", "gcc", "evil"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho $0 $@ >> {tmp_path}/ran\necho 'xz (XZ Utils) 5.4'\n")
        program.chmod(0o755)
    return tmp_path


def test_a_catalogue_has_no_program_run_that_is_not_installed(planted, monkeypatch):
    monkeypatch.chdir(planted)
    catalogue = planted / "workloads"
    catalogue.mkdir()
    commands = {
        "a": "./xz -6 file",
        "b": f"{planted}/xz -6 file",
        "c": f'sh -c "$({planted}/evil -print-prog-name=cc1)"',
        "d": f'sh -c "$({planted}/gcc -print-prog-name=cc1)"',
        "e": 'sh -c "$(evil -print-prog-name=cc1)"',
    }
    texts = [f"  {name}: {{command: {json.dumps(command)}, package: xz-utils}}" for name, command in commands.items()]
    (catalogue / "theirs.yaml").write_text("\n".join(["workloads:", *texts]) + "\n")
    missing_packages(catalogue)
    for command in commands.values():
        identity.lack(command.split(), "xz-utils", os.environ["PATH"])
    assert not (planted / "ran").exists()


# Results: their names, links and records.


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_in_results_do_not_lead_out_of_their_folder(name):
    folder = StudyFolder(Path("results/stranger"))
    for place in (folder.mix_file, folder.rounds_file, folder.bundle, folder.confirming_file):
        with pytest.raises(CastmatesError, match="no name of a file"):
            place(name)
    with pytest.raises(CastmatesError, match="no name of a file"):
        folder.launch(f"{name}/1")


def test_a_plan_of_a_stranger_reads_no_launch_outside_of_its_folder(tmp_path):
    one = plan([cohort("c", mix("a@0", "b@1"))], launches=2)
    folder = study_folder.write(tmp_path / "theirs", one, written(one, lambda *_: 100.0))
    text = (folder / "plan.json").read_text()
    (folder / "plan.json").write_text(text.replace('"id": "c"', '"id": "../../elsewhere"'))
    done = CliRunner().invoke(app, ["compare", str(folder), str(folder)])
    assert "no name of a file" in str(done.exception)


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside"])
def test_a_paper_is_written_into_its_folder_alone(tmp_path, name):
    results = results_maker.make(tmp_path / "results/theirs", launches=3)
    file = results / "plan.json"
    content = json.loads(file.read_text())
    content["study"] = name
    for launch in content["launches"]:
        launch["study"] = name
    file.write_text(json.dumps(content))
    study = tmp_path / "study.yaml"
    study.write_text("name: theirs\nleads: [a]\nantagonists: [b]\n")
    for path in (name, "a/../../b"):
        with pytest.raises(CastmatesError, match="would be written outside of"):
            Folder(tmp_path / "paper").copy(study, path, "")
        with pytest.raises(CastmatesError, match="would be written outside of"):
            Folder(tmp_path / "paper").text(path, "x", "")
    assert not (tmp_path / "outside").exists()


LINKS = [".sweep.lock", "report", "tables/effects.parquet", "launches/c", "launches/c/1/launch.json", "figures/x.svg"]


@pytest.mark.parametrize("where", LINKS)
def test_a_link_in_results_is_refused_and_its_target_kept(tmp_path, where):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "launch.json").write_text('{"status": "failed"}')
    results = StudyFolder(tmp_path / "results/theirs")
    link = results.path / where
    link.parent.mkdir(parents=True)
    link.symlink_to(precious / "launch.json" if "." in link.name else precious)
    for use in (refuse_links, hold_sweep_lock, lambda folder: list(forget_useless(folder))):
        with pytest.raises(CastmatesError, match=f"{link} is a link"):
            use(results)
    assert (precious / "launch.json").read_text() == '{"status": "failed"}'
    elsewhere = tmp_path / "linked"
    elsewhere.symlink_to(results.path)
    link.unlink()
    refuse_links(StudyFolder(elsewhere))  # the folder itself may lie on another disk


def test_a_paper_publishes_nothing_that_a_link_leads_to(tmp_path):
    results = results_maker.make(tmp_path / "results/theirs", launches=3)
    (tmp_path / "secret").write_text("secret")
    (results / "tables/secret.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(CastmatesError, match="is a link"):
        write_paper(results, tmp_path / "paper", "", [])
    assert not (tmp_path / "paper").exists()


def test_a_record_without_its_tables_counts_for_nothing(tmp_path):
    """Snakemake would launch the launch again, with the commands that the record brings along."""
    one = plan([cohort("c", mix("a@0", "b@1"))], launches=2)
    folder = study_folder.write(tmp_path / "theirs", one, written(one, lambda *_: 100.0))
    assert found_launches(StudyFolder(folder)).measured == []
    for name in LAUNCH_TABLES:
        (folder / "launches/c/1" / table_file(name)).touch()
    assert [launch.path for launch in found_launches(StudyFolder(folder)).measured] == ["c/1"]


@pytest.mark.parametrize("away", [-1, 1])
def test_launches_of_another_protocol_are_not_measured(tmp_path, away):
    """They were measured in another way: they are never estimated together with those of this one."""
    one = plan([cohort("c", mix("a@0", "b@1"))], launches=2)
    folder = study_folder.write(tmp_path / "theirs", one, written(one, lambda *_: 100.0))
    for launch, protocol in (("c/1", PROTOCOL), ("c/2", PROTOCOL + away)):
        for name in LAUNCH_TABLES:
            (folder / "launches" / launch / table_file(name)).touch()
        file = folder / "launches" / launch / "launch.json"
        record = json.loads(file.read_text())
        record["spec"]["cohort"]["protocol"] = protocol
        file.write_text(json.dumps(record))
    found = found_launches(StudyFolder(folder))
    assert ([launch.path for launch in found.measured], found.torn) == (["c/1"], {})


def results_full_of(evil, place):
    """Results with this text wherever a text of a stranger's may stand."""
    folder = results_maker.make(place, leads=["a"], antagonists=["b"], machine=machine_of(evil))
    for table, column in (("windows", "blamed"), ("launches", "reason")):
        file = folder / f"tables/{table}.parquet"
        rows = pd.read_parquet(file)
        rows[column] = evil
        rows["valid" if table == "windows" else column] = False if table == "windows" else evil
        rows.to_parquet(file)
    content = json.loads((folder / "plan.json").read_text())
    content["titles"] = dict.fromkeys(content["titles"], evil)
    (folder / "plan.json").write_text(json.dumps(content))
    for record in folder.glob("launches/*/*/launch.json"):
        text = json.loads(record.read_text())
        record.write_text(json.dumps(text | {"status": "failed", "reason": evil, "host": evil}))
    return folder


def test_texts_of_results_reach_the_page_escaped(tmp_path):
    html = page(read_results(results_full_of(EVIL, tmp_path / "theirs")), dict.fromkeys(FIGURES, "<svg></svg>"))
    assert len(parsed(html).all("script")) == 1
    assert "alert(1)" in html
    assert EVIL not in html


def machine_of(text):
    return {key: text if isinstance(value, str) else value for key, value in results_maker.MACHINE.items()}


@pytest.mark.parametrize("inside", [*drawings.ACTIVE, *drawings.LOADING, *drawings.STRANGE])
def test_a_drawing_with_anything_but_a_drawing_is_not_put_on_the_page(tmp_path, inside):
    file = tmp_path / "figure.svg"
    file.write_text(f"<svg {drawings.NAMESPACES}>{inside}</svg>")
    with pytest.raises(CastmatesError, match=r"this drawing (holds|is no SVG)"):
        inline_svg(file)


def test_a_drawing_of_ours_is(tmp_path):
    file = tmp_path / "figure.svg"
    inside = '<g clip-path="url(#p1)"><text>only = 3, href="x"</text><use xlink:href="#m2"/></g>'
    file.write_text(f"<svg {drawings.NAMESPACES}>{inside}</svg>")
    assert 'only = 3, href="x"</text><use href="#m2" />' in inline_svg(file)


# The code: what would run what it reads.

RUNS = {"pickle", "_pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle", "tarfile", "zipfile"}
WRITES = {"castmates/hardware_day/bundle.py": {"tarfile"}}  # and reads none
CALLS = {"eval", "exec", "system", "popen", "unpack_archive", "extractall", "unsafe_load", "full_load", "read_pickle"}


def modules():
    return [file for room in ("castmates", "scripts", "docs_site") for file in (ROOT / room).rglob("*.py")]


def test_no_module_runs_what_it_reads():
    """No pickles, no archives that are unpacked, no text that is evaluated, no shell."""
    for file in modules():
        text = file.read_text(encoding="utf-8")
        writes = WRITES.get(str(file.relative_to(ROOT)), set())
        assert not writes or not re.search(r"extract|getmember|mode=\"r|unpack", text), file
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or "").split(".")[0]}
            elif isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                assert name not in CALLS, f"{file}:{node.lineno} calls {name}"
                assert not any(key.arg == "shell" for key in node.keywords), f"{file}:{node.lineno} starts a shell"
                assert not any(key.arg == "allow_pickle" for key in node.keywords), f"{file}:{node.lineno}"
                continue
            else:
                continue
            assert not names & RUNS - writes, f"{file}:{node.lineno} imports {names & RUNS}"


def test_no_python_of_ours_takes_a_module_from_the_folder_it_runs_in():
    """`-m` and `-c` put that folder before everything that is installed, where neither -P nor -I stands."""
    for file in modules():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List) and node.elts and re.search("python|executable", ast.unparse(node.elts[0])):
                words = {getattr(each, "value", None) for each in node.elts}
                assert not words & {"-m", "-c"} or words & {"-P", "-I"}, f"{file}:{node.lineno}"
    for file in (ROOT / "config/workloads").glob("*.yaml"):
        assert not re.search(r"(?<!-P )-m castmates", file.read_text(encoding="utf-8")), file


def test_no_text_reaches_a_page_past_the_escaping():
    """Only what Castmates itself has drawn or written is markup."""
    for file in (ROOT / "castmates/report").rglob("*.j2"):
        text = file.read_text(encoding="utf-8")
        assert "autoescape" not in text
        for expression in re.findall(r"\{\{(.*?)\|\s*safe\b", text):
            names = re.findall(r"[\w.]+", re.sub(r'"(?:\\.|[^"\\])*"', "", expression))
            assert {*names} <= {"loop.index"}, f"{file} marks {expression} as safe"
    places = {
        str(file.relative_to(ROOT / "castmates/report"))
        for file in (ROOT / "castmates/report").rglob("*.py")
        if "Markup(" in file.read_text(encoding="utf-8")
    }
    assert places == {"page/page.py", "page/common_parts.py"}


def test_every_claim_of_the_threat_model_names_tests_that_exist():
    lines = (
        (ROOT / "docs/privileges.md")
        .read_text(encoding="utf-8")
        .partition("## Who may do what to whom")[2]
        .splitlines()
    )
    claims = [line for line in lines if line.startswith("| ") and not line.startswith(("| claim", "| ---"))]
    assert len(claims) > 15
    for claim in claims:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", claim)
        assert named, claim
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), (file, test)
