"""The figure of layers, from made-up rows (synthetic: nothing in them was measured)."""

from collections.abc import Iterator, Sequence

import pandas as pd
import pytest

from castmates.report.figures import layers as layers_figure
from castmates.report.figures.texts import texts_for
from castmates.report.results import Results
from castmates.results.columns.launch import LAYERS
from castmates.results.columns.study import frame
from tests.unit.snapshots import assert_as_before

KINDS = {("convolution", "forward"): 20.0, ("convolution", "backward"): 41.0, ("optimizer", "optimizer"): 9.0}
KINDS |= {("runtime", ""): 3.0, ("unattributed", ""): 2.0}
KINDS |= {(f"kind {number}", "forward"): 1.0 for number in range(15)}


class Made(Results):
    def launch_parts(self, name: str, columns: Sequence[str], categories: Sequence[str]) -> Iterator[pd.DataFrame]:
        assert name == "layers"
        for _, part in self.layers.groupby("launch"):
            yield part[columns].astype(dict.fromkeys(categories, "category"))


def made(layers: pd.DataFrame) -> Made:
    return Made("made-up", layers=layers)


def rows(launch: int, scene: str, mix: str, slower: float, partition: str = "unmanaged", **others: str) -> list[dict]:
    head = {"study": "made-up", "cohort": "a", "launch": launch, "scene": scene, "mix": mix, "partition": partition}
    head |= {"member": "lead@0", "platform": "measured", "calls": 1.0, "steps": 5} | others
    return [
        head | {"layer": f"{kind}/{part}", "kind": kind, "direction": direction, "share": 0.0}
        | {"ms_per_step": ms * slower / 2}
        for (kind, direction), ms in KINDS.items() for part in "ab"
    ]  # fmt: skip


@pytest.fixture
def two_launches() -> Made:
    table = [
        *rows(1, "alone", "", 1.0),
        *rows(2, "alone", "", 1.2),
        *rows(1, "corun:lead+beside", "lead+beside@1", 1.5),
    ]
    table += rows(1, "corun:lead+beside@half", "lead+beside@1", 9.0, "half")
    return made(frame(table, LAYERS))


def test_kinds_are_means_over_the_launches_that_profiled_the_scene(two_launches):
    _, source = layers_figure.draw(two_launches)
    found = source.set_index(["scene", "kind", "direction"])["ms_per_step"]
    assert found["alone", "convolution", "backward"] == pytest.approx(41.0 * 1.1)
    assert found["corun:lead+beside", "convolution", "backward"] == pytest.approx(41.0 * 1.5)
    assert set(source["beside"]) == {"alone", "beside"}
    totals = source.groupby("scene")["ms_per_step"].sum()
    assert totals["alone"] == pytest.approx(sum(KINDS.values()) * 1.1)


def test_the_lines_of_a_panel_add_up_to_the_whole_and_partitions_stay_in_the_csv(two_launches):
    figure, source = layers_figure.draw(two_launches)
    assert "half" in set(source["partition"])
    lines = layers_figure.lines_of(source[source["partition"] == "unmanaged"])
    names = [name for name, _ in lines]
    assert names[0] == "convolution, backward"
    assert names[-4:] == ["all other kinds (6)", "runtime", "unattributed", "the whole step"]
    for beside in ("alone", "beside"):
        parts = [line[beside]["ms_per_step"] for _, line in lines[:-1]]
        assert sum(parts) == pytest.approx(lines[-1][1][beside]["ms_per_step"])
    words = " ".join(text.get_text() for axes in figure.axes for text in [axes.title, axes._left_title])
    assert "profiled, not measured" in words


@pytest.mark.parametrize(
    ("other", "titles"),
    [
        ({"member": "lead@2", "cohort": "b"}, ["lead@0", "lead@2"]),
        ({"platform": "emulated", "cohort": "b"}, ["lead (emulated)", "lead (measured)"]),
    ],
    ids=["seats", "platforms"],
)
def test_seats_and_platforms_have_panels_of_their_own(other, titles):
    table = made(frame([*rows(1, "alone", "", 1.0), *rows(1, "alone", "", 3.0, **other)], LAYERS))
    figure, source = layers_figure.draw(table)
    assert sorted(axes.get_title("left").split(",")[0] for axes in figure.axes) == titles
    assert (source["launches"] == 1).all()
    wholes = [
        layers_figure.lines_of(part)[-1][1]["alone"]["ms_per_step"] for _, part in layers_figure.panels_of(source)
    ]
    assert sorted(wholes) == pytest.approx([sum(KINDS.values()), 3 * sum(KINDS.values())])
    said = texts_for("layers", table).alternative
    assert all(title in said for title in titles)


def test_the_same_antagonist_on_two_seats_has_two_looks():
    seats = rows(1, "alone", "", 1.0)
    seats += [row for cpu in "12" for row in rows(1, f"corun:lead+b@{cpu}", f"lead+b@{cpu}", float(cpu))]
    source, _ = layers_figure.by_kind([frame(seats, LAYERS)])
    assert set(source["beside"]) == {"alone", "b@1", "b@2"}


def test_its_texts_say_that_it_is_no_measurement_and_why_there_is_nothing_to_see(two_launches):
    studies = {"two launches": two_launches, "no profile": made(frame([], LAYERS))}
    said = {}
    for name, one in studies.items():
        texts, (figure, _) = texts_for("layers", one), layers_figure.draw(one)
        said[name] = [texts.caption, texts.alternative, *(" ".join(text.get_text().split()) for text in figure.texts)]
    assert_as_before("layers-figure", said)
