"""Data sets are made once for each content, whole or not at all, and what went wrong is a sentence."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.runner.processes import starts
from castmates.study.spec import Member
from castmates.workloads import environments, inputs, sources
from castmates.workloads.inputs import Recipe
from tests.golden.digests import forget

ENVS = Path("envs")
GENERATOR = '''
"""Writes a few words, or fails."""
import sys
from pathlib import Path
DATA_FILES = ["words.py"]
folder = Path(sys.argv[sys.argv.index("--into") + 1])
with open(Path(__file__).with_name("calls"), "a") as calls:
    calls.write("x")
if "fail" in sys.argv:
    (folder / "half").write_text("half")
    sys.exit("no words\\nare left")
if "nothing" not in sys.argv:
    (folder / "deep").mkdir()
    (folder / "deep" / "words").write_text("words " * 100)
'''


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A generator in a separate package, and recipes for it."""
    room = tmp_path / "generators"
    room.mkdir()
    (room / "__init__.py").touch()
    monkeypatch.setattr(sources, "PACKAGE", room.name)
    (room / "words.py").write_text("WORDS = 1\n")
    (room / "make.py").write_text(GENERATOR)
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    recipes = {name: Recipe("generators.make", (name,)) for name in ("good", "fail", "nothing")}
    monkeypatch.setattr(inputs, "RECIPES", recipes)
    return room


def test_it_is_made_once_with_what_is_known_of_it(made, tmp_path, capsys):
    place = inputs.build("good", ENVS, tmp_path / "cache")
    assert place == inputs.location("good", ENVS, tmp_path / "cache")
    facts = json.loads(inputs.ready_file(place).read_text())
    assert (facts["name"], facts["key"], facts["bytes"], facts["files"]) == ("good", place.name[5:], 600, 1)
    with ThreadPoolExecutor(2) as two:
        assert list(two.map(lambda _: inputs.build("good", ENVS, tmp_path / "cache"), range(2))) == [place, place]
    assert (made / "calls").read_text() == "x"
    assert "Making the data set 'good'" in capsys.readouterr().err


def test_two_builders_at_once_make_it_once(made, tmp_path):
    with ThreadPoolExecutor(2) as two:
        list(two.map(lambda _: inputs.build("good", ENVS, tmp_path / "cache"), range(2)))
    assert (made / "calls").read_text() == "x"


def test_the_digest_is_of_the_files_alone(made, tmp_path):
    places = [inputs.build("good", ENVS, tmp_path / name) for name in ("one", "two")]
    first, second = (json.loads(inputs.ready_file(place).read_text())["digest"] for place in places)
    assert first == second


def test_what_a_killed_builder_left_is_made_anew(made, tmp_path):
    place = inputs.location("good", ENVS, tmp_path)
    for left in (place, place.with_name(f".{place.name}.partial")):
        left.mkdir(parents=True)
        (left / "rubbish").write_text("x")
    inputs.build("good", ENVS, tmp_path)
    assert not (place / "rubbish").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fail", 'generators.make ended with status 1 and last wrote "are left"'),
        ("nothing", "its generator ended well and wrote nothing"),
        ("goods", "there is no data set 'goods'; there are: fail, good, nothing"),
    ],
)
def test_what_cannot_be_made_is_a_sentence_and_leaves_nothing(made, tmp_path, name, said):
    with pytest.raises(CastmatesError) as caught:
        inputs.build(name, ENVS, tmp_path / "cache")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("cache/inputs/*/.ready.json"))


@pytest.mark.parametrize("file", ["make.py", "words.py"])
def test_another_generator_is_another_data_set(made, file):
    before = {name: inputs.key(name, ENVS) for name in inputs.known()}
    assert len(set(before.values())) == 3
    (made / file).write_text((made / file).read_text() + "CHANGED = 1\n")
    forget()
    assert inputs.key("good", ENVS) != before["good"]


def test_every_recipe_has_a_generator_and_an_environment_that_there_is():
    for name, recipe in inputs.RECIPES.items():
        assert len(inputs.key(name, ENVS)) == 12
        assert recipe.environment in (None, *environments.known(ENVS))


# Placeholders ------------------------------------------------------------------------------------------------------


def member(*command: str, **keys: object) -> Member:
    plain = {"name": "m@0", "workload": "m", "role": "lead", "cpus": (0, 1), "nodes": (), "content": "c", "unit": "run"}
    some = {"environment": None, "environment_key": None, "progress": "runs", "variables": {}, "ready_within": 1.0}
    return Member.model_validate(plain | some | {"command": command} | keys)


def test_placeholders_become_what_they_are_here(made, tmp_path):
    place = inputs.build("good", ENVS, tmp_path / "cache")
    one = member(
        *("{python}", "-c", "{cpus}{cpus}", "{inputs}/deep", "{input} {{}} {x}"),
        variables={"WHERE": "{scratch}:{inputs}", "PLAIN": "{print}"},
        inputs="good",
        inputs_key=inputs.key("good", ENVS),
    )
    command, variables, ours = starts.filled(one, tmp_path / "s", tmp_path / "cache")
    assert command == [sys.executable, "-c", "22", f"{place}/deep", "{input} {{}} {x}"]
    assert variables == {"WHERE": f"{tmp_path / 's'}:{place}", "PLAIN": "{print}"}
    assert [file.name for file in Path(ours["PYTHONPATH"]).iterdir()] == ["castmates"]


def test_a_program_of_others_does_not_see_our_packages(tmp_path):
    assert starts.filled(member("perl", "{cpus}"), tmp_path, tmp_path) == (["perl", "2"], {}, {})


def test_a_data_set_that_is_not_made_is_a_sentence(made, tmp_path):
    one = member("cat", "{inputs}/a", inputs="good", inputs_key="0" * 12)
    with pytest.raises(CastmatesError, match="run `castmates internals build-inputs good` first"):
        starts.filled(one, tmp_path, tmp_path)
