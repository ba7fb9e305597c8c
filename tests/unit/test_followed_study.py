"""`castmates profile`: the study that it writes, what it refuses, and what it prints of traces."""

import re
from dataclasses import replace

import pytest

from castmates.errors import CastmatesError
from castmates.pipeline import followed_study as module
from castmates.pipeline.followed_study import Followed, followed_study, script_of
from castmates.pipeline.followed_trial import Steps
from castmates.project import load, read_catalogue
from castmates.report.answer.operation_lines import operation_lines
from castmates.report.figures import operations
from castmates.shipped import catalogue, environments
from castmates.study.model import Study, Workload
from castmates.study.profile_launches import can_be_profiled
from castmates.study.reading import read_keys
from tests.unit.makers import plan, study, workloads
from tests.unit.operations_maker import results
from tests.unit.snapshots import assert_as_before

KNOWN = read_catalogue(catalogue().resolve())
SEEN = Steps(0.02, 400_000_000, 70.0, "tensorflow", {"python": "3.12.1", "tensorflow": "2.20.0"})
TRAIN = ["python", "train.py", "--lr", "1e-3"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "envs").symlink_to(environments().resolve())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "try_steps", lambda *_: SEEN)
    return tmp_path


def written(command=TRAIN, beside=("stream", "chase"), name="", **more):
    return followed_study(Followed(command, list(beside), **more), name, KNOWN, lambda _: None)


def test_the_study_of_a_program_traces_and_measures_it_by_its_steps(here):
    file = written(step_function="train_step", cpus=2, xla=False, keys={"launches": 5})
    found = read_keys(Study, file.read_text(), str(file))
    own = found.workloads["train"]
    assert (str(file), found.name) == ("studies/train.yaml", "train")
    assert (found.leads, found.antagonists) == (["train"], ["stream", "chase"])
    assert (own.words, own.attach, own.step_function, own.progress) == (TRAIN, "tensorflow", "train_step", "heartbeat")
    assert (own.cores, own.ready_within, own.variables) == (2, 280, {"CASTMATES_XLA": "off"})
    assert own.memory_bytes == 600_000_000
    assert (found.profile.launches, found.profile.steps, found.profile.times) == (5, 8, 3)
    assert load(file).study.workloads["train"].attach == "tensorflow"


def test_what_env_sets_is_the_workload_s_so_that_a_trial_can_change_it(here):
    file = written(["env", "A=1", "EMPTY=", "B=x=y", *TRAIN])
    own = read_keys(Study, file.read_text(), str(file)).workloads["train"]
    assert own.words == TRAIN
    assert own.variables == {"A": "1", "EMPTY": "", "B": "x=y"}
    assert written(["env", "A=1", "EMPTY=", "B=x=y", *TRAIN]) == file
    no = read_keys(Study, written(["env", "NO=1", *TRAIN]).read_text(), "").workloads["train-2"]
    assert no.variables == {"NO": "1"}


@pytest.mark.parametrize("words", [["-i"], ["A=1", "-u", "B"], ["A=1", "B.x=2"]])
def test_what_only_env_understands_is_left_to_it(here, words):
    (own,) = read_keys(Study, written(["env", *words, *TRAIN]).read_text(), "").workloads.values()
    assert (own.words, own.variables) == (["env", *words, *TRAIN], {})
    assert Followed(["env", "A=1"], []).command == ["env", "A=1"]


def test_the_same_command_goes_on_and_what_is_followed_otherwise_is_another_study(here):
    first = written()
    assert written() == first
    others = [written(step_function="f"), written(cpus=2), written(xla=False), written(beside=["chase"])]
    assert [file.name for file in others] == [f"train-{number}.yaml" for number in (2, 3, 4, 5)]
    with pytest.raises(CastmatesError, match=r"train\.yaml has 'profile\.steps: 8' and not 9"):
        written(keys={"steps": 9})
    with pytest.raises(CastmatesError, match="'strean' is not in the catalogue"):
        written(beside=["strean"])


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python3.12", "-u", "src/Fit Model.py", "x"], "Fit Model"),
        (["env", "A=1", "/venv/bin/python", "-m", "my.package.train", "-v"], "train"),
        (["python", "train.py", "-m", "small"], "train"),
        (["python", "-c", "print()"], "python"),
        (["./train"], "./train"),
    ],
)
def test_a_program_is_called_by_its_script(command, name):
    assert script_of(command) == name


def test_a_program_that_is_followed_can_be_traced():
    programs = workloads("stream", job=Workload(command="python train.py", progress="heartbeat", attach="tensorflow"))
    found = plan(study(["job"], ["stream"], profile={}), programs=programs)
    assert {launch.cohort.lead.workload for launch in found.profiles} == {"job"}
    lead, _ = found.profiles[0].cohort.members
    assert lead.attach == "tensorflow"
    assert can_be_profiled(found.profiles[0].cohort)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("attach: tensorflow", "has 'attach: tensorflow', but its progress is 'runs'; make it 'heartbeat'"),
        ("progress: heartbeat, step_function: f", "has a 'step_function' but no 'attach'"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(here, keys, sentence):
    (here / "s.yaml").write_text(
        f"name: s\nleads: [job]\nantagonists: [stream]\nworkloads: {{job: {{command: python x.py, {keys}}}}}\n"
    )
    with pytest.raises(CastmatesError) as caught:
        load("s.yaml")
    assert sentence in str(caught.value)


def test_the_terminal_shows_the_step_what_takes_its_time_and_what_loses(tmp_path):
    lines = list(operation_lines(results(tmp_path / "study", 4)))
    taken = [line.split() for line in lines if re.match(r" +\d+ %  ", line)]
    assert sum(float(words[2]) for words in taken) == pytest.approx(8.42, abs=0.1)
    assert len(lines) <= 40
    of_two = results(tmp_path / "few", 2)
    few = list(operation_lines(of_two))
    assert_as_before("operations", {"four launches": lines, "two launches": few})
    drawn, source = operations.draw(replace(of_two, study=study(["lead"], ["other"])))
    assert set(source["verdict"]) == {"too few launches"}
    assert source["loss_low"].isna().all()
    assert len(drawn.axes) > 1
