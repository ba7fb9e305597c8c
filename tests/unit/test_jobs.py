"""What the jobs of PyTorch and JAX share, without either: what can be asked for, the data, and the judgement."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import yaml

from castmates import project
from castmates.workloads.inputs import RECIPES
from castmates.workloads.jaxjobs.shapes import SHAPES as JAX
from castmates.workloads.jobs import asked, data, loop
from castmates.workloads.llamajobs import asked as llama
from castmates.workloads.torchjobs.shapes import SHAPES as TORCH

CATALOGUE = Path(__file__).parents[2] / "config" / "workloads"
FRAMEWORKS = {"torch": TORCH, "jax": JAX}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_catalogue_asks_for_jobs_that_there_are_in_both_modes(name):
    workloads = yaml.safe_load((CATALOGUE / f"{name}.yaml").read_text())["workloads"]

    def options(one: dict) -> dict:
        above = options(workloads[one["like"]]) if "like" in one else {}
        return above | one["options"]

    found = set()
    for one in workloads.values():
        words = [word for key, value in options(one).items() for word in (f"--{key}", str(value))]
        wanted = asked.parse("x", "y", FRAMEWORKS[name], ("cpu", "gpu"), words)
        found.add((wanted.model, wanted.mode))
        assert wanted.known(FRAMEWORKS[name][wanted.model, wanted.size]), "its result is checked"
    assert found >= set(itertools.product({model for model, _ in FRAMEWORKS[name]}, asked.MODES))


def test_the_catalogue_asks_for_language_models_that_there_are(tmp_path):
    (tmp_path / "model.gguf").touch()
    workloads = project.read_catalogue(CATALOGUE)
    found = {name: one for name, one in workloads.items() if "castmates.workloads.llamajobs" in one.words}
    for name, one in found.items():
        words = [word.replace("{inputs}", str(tmp_path)) for word in one.words]
        wanted = llama.parse(words[words.index("castmates.workloads.llamajobs") + 1 :])
        assert bool(wanted.load) == bool(wanted.arrivals) == one.requests, name
        assert one.inputs in RECIPES
    assert {"llama-tiny", "llama-small", "llama-tiny-serve"} <= found.keys()


@pytest.mark.parametrize(("text", "load"), [("50", 50.0), ("2.5K", 2500.0), ("1M", 1e6)])
def test_loads_are_read_as_those_of_other_services(text, load):
    wanted = asked.parse("x", "y", TORCH, ("cpu",), ["--model", "dlrm", "--mode", "infer", "--load", text])
    assert wanted.load == load
    assert wanted.arrivals != asked.parse("x", "y", TORCH, ("cpu",), ["--model", "dlrm"]).arrivals


MISTAKES = {
    "--model dlrm --load 50": "--load is of requests: it needs --mode infer",
    "--model dlrm --mode infer --load 0K": "'0K' is not a rate above 0 per second",
    "--size tiny": "--model is missing: convnet, transformer, dlrm",
    "--model bert": "invalid choice: 'bert'",
    "--model dlrm --batch 0": "'0' is not a whole number from 1 on",
    "--model dlrm --device gpu": "invalid choice: 'gpu'",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_one_sentence(words, capsys):
    with pytest.raises(SystemExit) as end:
        asked.parse("x", "y", TORCH, ("cpu",), words.split())
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert MISTAKES[words] in line


def test_a_result_is_known_for_what_it_was_computed_from_alone():
    usual = ["--model", "dlrm"]
    assert asked.parse("x", "y", TORCH, ("cpu",), usual).known(TORCH["dlrm", "tiny"]) == 0.71594
    for more in (["--batch", "32"], ["--seed", "21"]):
        assert asked.parse("x", "y", TORCH, ("cpu",), usual + more).known(TORCH["dlrm", "tiny"]) is None


MAKERS = {
    "images": (data.images, {"side": 8}),
    "tokens": (data.tokens, {"vocabulary": 50, "sequence": 16}),
    "clicks": (data.clicks, {"rows": 7}),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_both_sources_begin_alike_and_one_seed_gives_one_sequence(kind):
    maker, details = MAKERS[kind]

    def first(source: str, seed: int = 5) -> list:
        return [one for batch in itertools.islice(data.batches(maker(details, 4, seed), source, 3), 6) for one in batch]

    pipeline, again, memory = first("pipeline"), first("pipeline"), first("memory")
    half = len(pipeline) // 2
    assert all(np.array_equal(one, other) for one, other in zip(pipeline, again, strict=True))
    assert all(np.array_equal(one, other) for one, other in zip(pipeline[:half], memory[:half], strict=True))
    assert all(np.array_equal(one, other) for one, other in zip(memory[:half], memory[half:], strict=True))
    assert not all(np.array_equal(one, other) for one, other in zip(pipeline[:half], pipeline[half:], strict=True))
    assert not all(np.array_equal(one, other) for one, other in zip(pipeline, first("pipeline", 6), strict=True))


def test_four_fifths_of_the_answers_can_be_learnt():
    draw = data.tokens({"vocabulary": 50, "sequence": 16}, 512, 5)
    given, next_ones = draw()
    usual = [np.bincount(next_ones[given == token]).max() / (given == token).sum() for token in range(50)]
    assert 0.75 < np.mean(usual) < 0.9  # four fifths, and a fiftieth of the rest
    counts, _, clicked = data.clicks({"rows": 7}, 4096, 5)()
    assert 0.87 < np.mean((counts[:, 0] > counts[:, 1]) == clicked) < 0.93  # and half of the rest


@pytest.mark.parametrize(
    ("values", "known", "said"),
    [
        ([2.0, 1.0], 1.004, ""),
        ([2.0, 1.0], None, ""),
        ([2.0, 1.0], 1.01, "gave 1 instead of 1.01"),
        ([2.0, float("nan"), 1.0], None, "nan"),
    ],
)
def test_the_result_of_the_warm_up_is_judged(values, known, said):
    why = loop._wrong_at_start(values, known)
    assert said in why
    assert bool(why) is bool(said)


def test_training_has_to_learn_and_inference_to_stay_the_same():
    assert loop._not_learnt([2.0] * 6, [1.9] * 6) == ""
    assert "nothing was learnt" in loop._not_learnt([2.0] * 6, [2.0] * 6)
    assert "nothing was learnt" in loop._not_learnt([2.0] * 6, [1.0, float("nan")])
    assert loop._changed(0.5, 0.50001) == ""
    assert "gives 0.51 now" in loop._changed(0.5, 0.51)
