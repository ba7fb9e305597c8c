"""The Model Garden jobs as far as they go without TensorFlow: what can be asked for, and what is written."""

import importlib
import inspect
import itertools
import sys
from pathlib import Path

import pytest
import yaml

from castmates.workloads import inputs, phase_file
from castmates.workloads.phases import Writer as PhaseWriter
from castmates.workloads.tfmodels import jobs, phases, records, runtime, wish
from tests.unit.phases.written_ranges import phases_of
from tests.unit.snapshots import assert_as_before

REPOSITORY = Path(__file__).parents[2]
CATALOGUE = REPOSITORY / "config" / "workloads" / "tfmodels.yaml"


def options(name: str, workloads: dict) -> dict:
    """The options and data set of a workload with what it inherits."""
    own = workloads[name]
    above = options(own["like"], workloads) if "like" in own else {"inputs": None, "options": {}, "command": None}
    merged = {key: own.get(key, above[key]) for key in above}
    return merged | {"options": above["options"] | own.get("options", {})}


WORKLOADS = yaml.safe_load(CATALOGUE.read_text())["workloads"]
EXPANDED = {name: options(name, WORKLOADS) for name in WORKLOADS}
JOBS = [name for name, one in EXPANDED.items() if one["command"] == "python -P -m castmates.workloads.tfmodels"]


@pytest.fixture
def data(tmp_path):
    (tmp_path / "one.tfrecord").touch()
    (tmp_path / "sentencepiece.model").touch()
    return str(tmp_path / "*.tfrecord")


@pytest.mark.parametrize("name", JOBS)
def test_every_job_of_the_catalogue_can_be_asked_for_and_reads_what_fits(name, data):
    one = EXPANDED[name]
    words = [word for key, value in (one["options"] | {"data": data}).items() for word in (f"--{key}", str(value))]
    wanted = wish.parse(words)
    assert wanted.shape.inputs == one["inputs"]
    assert one["options"]["data"].endswith(".tsv" if wanted.model == "dlrm" else ".tfrecord")


def test_the_catalogue_has_every_model_in_both_modes_and_the_full_ones():
    found = {(one["model"], one["mode"]) for one in (EXPANDED[name]["options"] for name in JOBS)}
    assert found == {(model, mode) for model in jobs.MODELS for mode in jobs.MODES}
    full = {EXPANDED[name]["options"]["model"] for name in JOBS if EXPANDED[name]["options"].get("size") == "full"}
    assert full == set(jobs.MODELS)


def test_every_model_has_every_size_and_its_data_set_has_a_recipe(monkeypatch):
    assert set(jobs.SHAPES) == {(model, size) for model in jobs.MODELS for size in jobs.SIZES}
    for shape in jobs.SHAPES.values():
        monkeypatch.setattr(sys, "argv", ["records", "--into", "x", *inputs.RECIPES[shape.inputs].arguments])
        given = records._arguments()
        asked = {key: value for key, value in shape.details.items() if hasattr(given, key)}
        assert {key: getattr(given, key) for key in asked} == {key: int(value) for key, value in asked.items()} or (
            given.kind in ("images", "scenes")  # whose side is the file's, not the model's
        )


def test_the_listing_names_every_job():
    lines = jobs.listing().splitlines()
    assert len(lines) == len(jobs.SHAPES)
    assert all(
        f"--model {model}" in line and size in line for (model, size), line in zip(jobs.SHAPES, lines, strict=True)
    )


def test_records_are_the_source_where_data_is_given_and_memory_where_not(data):
    assert wish.parse(["--model", "bert"]).source == "memory"
    assert wish.parse(["--model", "bert", "--data", data]).source == "records"
    assert wish.parse(["--model", "bert", "--data", data, "--source", "memory"]).source == "memory"


def test_every_flag_becomes_a_fact(data):
    words = (
        "--model dlrm --size full --mode infer --batch 7 --threads 3 --inter-threads 2 --onednn off --precision float32"
    )
    wanted = wish.parse([*words.split(), "--rows", "9", "--steps", "5", "--xla", "--data", data, "--device", "gpu",
                         "--load", "2.5K", "--arrivals", "7"])  # fmt: skip
    expected = wish.Wish(
        "dlrm", "full", "infer", 7, 3, "records", data, "gpu", True, False, "float32", False, 9, 5, "tensorflow", 1.0,
        2, 2500.0, 7,
    )  # fmt: skip
    assert wanted == expected
    assert wish.parse(["--model", "bert", "--threads", "3"]).inter_threads == 3


CANNOT = [
    "--model dlrm --batch 1", "--model dlrm --precision mixed_bfloat16", "--model bert --rows 5",
    "--model bert --phases --xla", "--model bert --source records", "--model transformer",
    "--model bert --data /nowhere/*.tfrecord", "--model transformer --data {here}",
    "--model mobilenetv2 --mode infer --precision int8", "--model mobilenetv2 --engine lite",
    "--model bert --mode infer --engine lite", "--model resnet50 --mode infer --engine lite --xla",
    "--model resnet50 --mode infer --engine lite --precision mixed_bfloat16", "--model resnet50 --width 0.5",
    "--model mobilenetv2 --width 9", "--model bert --threads none",
]  # fmt: skip


def test_what_cannot_be_is_one_sentence(capsys, tmp_path):
    (tmp_path / "x").touch()

    def said(words):
        with pytest.raises(SystemExit) as end:
            wish.parse(words.format(here=tmp_path / "x").split())
        assert end.value.code == 2
        return capsys.readouterr().err.replace(str(tmp_path), "HERE").splitlines()

    told = {words: said(words) for words in CANNOT}
    assert {len(lines) for lines in told.values()} == {1}
    assert_as_before("tfmodels", told)


def test_the_phases_of_each_step_are_written_and_their_medians_kept(tmp_path):
    phase_file.create(tmp_path / "phases")
    written = phases.StepPhases("train", PhaseWriter(tmp_path / "phases"))
    for number in range(3):
        written.step([10, 10 + 1_000_000 * number, *(1_000_000 * (number + end) + 10 for end in (2, 5, 9))])
    assert written.medians_ms() == {"input": 1.0, "forward": 2.0, "backward": 3.0, "optimizer": 4.0}
    reader = phase_file.Reader(tmp_path / "phases")
    found = phases_of(reader)
    assert [one.name for one in found[:4]] == ["input", "forward", "backward", "optimizer"]
    assert [one.step for one in found] == [0] * 4 + [1] * 4 + [2] * 4
    assert all(after.begin_ns == before.end_ns for before, after in itertools.pairwise(found[:4]))


def test_steps_whose_marks_cannot_be_are_counted_and_not_written(tmp_path):
    phase_file.create(tmp_path / "phases")
    written = phases.StepPhases("infer", PhaseWriter(tmp_path / "phases"))
    written.step([0, 5, 9_000_000])
    written.step([0, 10_000_000, 9_000_000])  # a hair: the marks' clock has microseconds
    written.step([0, 20_000_000, 9_000_000])  # somebody has set the clock
    written.step([0, 5])  # a mark did not run
    assert (written.steps, written.unclear) == (4, 2)
    reader = phase_file.Reader(tmp_path / "phases")
    assert reader.dropped == 4
    found = phases_of(reader)
    assert [(one.step, one.begin_ns, one.end_ns) for one in found[2:]] == [
        (1, 0, 10_000_000),
        (1, 10_000_000, 10_000_000),
    ]


def test_marks_of_the_walls_clock_are_put_on_the_steady_one():
    assert phases.on_steady_clock([99.5, 100.0, 100.25], now_ns=5_000_000_000, wall=100.0) == [
        4_500_000_000,
        5_000_000_000,
        5_250_000_000,
    ]


def test_phases_that_nobody_listens_to_are_only_kept():
    written = phases.StepPhases("infer", PhaseWriter(None))
    assert written.medians_ms() == {}
    written.step([0, 1_000_000, 3_000_000])
    assert written.medians_ms() == {"input": 1.0, "forward": 2.0}


def test_a_job_marks_its_phases_where_the_runner_listens(monkeypatch):
    assert not wish.parse(["--model", "bert"]).phases
    assert wish.parse(["--model", "bert", "--phases"]).phases
    monkeypatch.setenv("CASTMATES_PHASES", "/dev/shm/file")
    assert wish.parse(["--model", "bert"]).phases
    with pytest.raises(SystemExit):
        wish.parse(["--model", "bert", "--xla"])


def test_what_is_put_off_is_imported_at_its_first_use_and_a_plain_package_never(tmp_path, monkeypatch):
    for name in ("heavy", "below"):
        (tmp_path / f"{name}_pkg").mkdir()
        (tmp_path / f"{name}_pkg" / "__init__.py").write_text("import sys; sys.ran.append(__name__)\nVALUE = 5\n")
        (tmp_path / f"{name}_pkg" / "part.py").write_text("VALUE = 6\n")
    monkeypatch.setattr(sys, "ran", [], raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [runtime.Finder(["heavy_pkg"], ["below_pkg"]), *sys.meta_path])
    heavy, below = importlib.import_module("heavy_pkg"), importlib.import_module("below_pkg.part")
    assert inspect.getmodule(heavy) is heavy
    assert heavy.__spec__.name == "heavy_pkg"
    assert (below.VALUE, sys.ran) == (6, [])
    assert (heavy.VALUE, heavy.VALUE, sys.ran) == (5, 5, ["heavy_pkg"])
    assert importlib.import_module("heavy_pkg.part").VALUE == 6
    assert sys.ran == ["heavy_pkg"]
    with pytest.raises(AttributeError):
        _ = heavy.nothing


def test_a_module_below_one_that_is_put_off_brings_it(tmp_path, monkeypatch):
    (tmp_path / "other_pkg").mkdir()
    (tmp_path / "other_pkg" / "__init__.py").write_text("VALUE = 7\n")
    (tmp_path / "other_pkg" / "part.py").write_text("from other_pkg import VALUE\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [runtime.Finder(["other_pkg"], []), *sys.meta_path])
    importlib.import_module("other_pkg")
    assert importlib.import_module("other_pkg.part").VALUE == 7
