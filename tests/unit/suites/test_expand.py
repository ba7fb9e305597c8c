"""Keys of a catalogue file that name an installation become workloads, or one sentence that names what is missing."""

import pytest

from castmates.project import load
from castmates.study.model import Catalogue
from castmates.study.reading import read_keys
from castmates.workloads.suites.expand import expanded
from tests.unit.snapshots import assert_as_before, refusal
from tests.unit.suites import trees


def workloads(text):
    return expanded(read_keys(Catalogue, text, "suites.yaml"), "suites.yaml").workloads


def refused(text):
    return refusal(workloads, text)


@pytest.fixture
def spec(tmp_path):
    root = trees.spec_root(tmp_path / "spec")
    trees.spec_benchmark(root)
    trees.spec_benchmark(root, "507.cactuBSSN_r")
    (root / "benchspec" / "CPU" / "998.specrand_is").mkdir()
    return root


def test_every_benchmark_that_is_set_up_is_a_workload(spec):
    made = workloads(f"spec2017: {{root: {spec}}}")
    assert sorted(made) == ["spec2017.cactubssn_r", "spec2017.mcf_r"]
    one = made["spec2017.mcf_r"]
    assert one.words[:5] == ["{python}", "-P", "-m", "castmates.workloads.suites.run", "spec2017"]
    assert one.words[one.words.index("--at") + 1] == "benchspec/CPU/505.mcf_r/run/run_base_test_mine-m64.0000"
    assert (one.progress, one.unit, one.cores) == ("heartbeat", "run", 1)


@pytest.mark.parametrize("word", ["505.mcf_r", "mcf_r", "mcf", "'505'"])
def test_a_benchmark_may_be_named_in_several_ways(spec, word):
    assert list(workloads(f"spec2017: {{root: {spec}, size: test, benchmarks: [{word}]}}")) == ["spec2017.mcf_r"]


def test_another_build_is_another_command(spec):
    text = f"spec2017: {{root: {spec}, size: test, benchmarks: [mcf]}}"
    before = workloads(text)["spec2017.mcf_r"].words
    run = spec / "benchspec/CPU/505.mcf_r/run/run_base_test_mine-m64.0000"
    trees.program(run / "mcf_r_base.mine-m64", "echo other")
    assert workloads(text)["spec2017.mcf_r"].words != before


def test_what_is_missing_in_spec_is_named(spec):
    wrong = [
        "root: /nowhere/spec", "root: /usr", "root: ROOT, size: refrate",
        "root: ROOT, size: test, benchmarks: [specrand_is]", "root: ROOT, size: test, benchmarks: [mfc_r]",
        "root: ROOT, size: test, label: other", "root: ROOT, size: ref", "root: ROOT, lable: x", "size: test",
    ]  # fmt: skip
    told = {keys: refused(f"spec2017: {{{keys.replace('ROOT', str(spec))}}}") for keys in wrong}
    assert_as_before("spec", {keys: said.replace(str(spec), "ROOT") for keys, said in told.items()})


def test_several_labels_ask_for_one(spec):
    trees.spec_benchmark(spec, label="other")
    assert "several labels (mine-m64, other); choose one with 'label'" in refused(
        f"spec2017: {{root: {spec}, size: test, benchmarks: [mcf]}}"
    )
    assert workloads(f"spec2017: {{root: {spec}, size: test, benchmarks: [mcf], label: other}}")


def test_parsec_and_npb_become_workloads_too(tmp_path):
    home = trees.parsec_package(tmp_path / "parsec")
    trees.npb_program(tmp_path / "npb")
    text = f"parsec: {{root: {tmp_path}/parsec, size: simsmall, cores: 2}}\nnpb: {{root: {tmp_path}/npb, size: S}}\n"
    made = workloads(text)
    assert sorted(made) == ["npb.cg", "parsec.blackscholes"]
    assert made["parsec.blackscholes"].cores == 2
    (home / "inst" / "amd64-linux.gcc-hooks").mkdir()
    assert "has the builds amd64-linux.gcc, amd64-linux.gcc-hooks; choose one with 'build'" in refused(text)
    assert "cg.B.x" in refused(f"npb: {{root: {tmp_path}/npb, size: B}}")
    assert "no package is built with native.runconf" in refused(f"parsec: {{root: {tmp_path}/parsec, size: native}}")


def test_a_study_may_name_them(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue" / "suites.yaml").write_text(f"spec2017: {{root: {spec}, size: test}}\n")
    (tmp_path / "study.yaml").write_text(
        "name: s\ncatalogue: catalogue\ncontrols: null\nleads: [spec2017.mcf_r]\nantagonists: [quick]\n"
        "workloads: {quick: {like: spec2017.cactubssn_r, ready_within: 3}}\n"
    )
    found = load("study.yaml").workloads
    assert found["quick"].words == found["spec2017.cactubssn_r"].words
    assert found["quick"].ready_within == 3
