"""The figure `timeline`: one launch chosen by a rule, its windows, masks and samples as they are. Synthetic results."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from castmates.report.figures import timeline as timeline_figure
from castmates.report.figures.timeline import BANDWIDTH, OCCUPANCY, mask_of, representative, timeline
from castmates.results.columns.launch import SAMPLES
from castmates.results.columns.study import STAMPS, frame
from castmates.results.folder import StudyFolder
from tests.unit.partition_maker import LEAD, STREAM, atoms
from tests.unit.test_figure_partitions import results
from tests.unit.windows_maker import slices_of

MIB = 2**20


class Watched:
    """Results whose launches have samples: the lead holds a MiB for each way, the stream two, in every window."""

    def __init__(self, tmp_path, missing=None):
        self.one = results(atoms(ways=(2, 4), caps=(), sensitivity=()), noise=0.02)
        self.one = dataclasses.replace(self.one, folder=StudyFolder(tmp_path), stamps=frame([], STAMPS))
        self.one.windows["schemata"] = np.where(
            self.one.windows["partition"] == "split-2",
            np.where(self.one.windows["role"] == "lead", "MB:0=100 L3:0=003", "MB:0=100 L3:0=ffc"), "L3:0=fff",
        )  # fmt: skip
        begin = self.one.windows["window"] * 13 * 10**8
        self.one.windows["switch_ns"], self.one.windows["open_ns"] = begin, begin + 10**8
        self.one.windows["close_ns"] = begin + 12 * 10**8
        for (cohort, launch), rows in self.one.windows.groupby(["cohort", "launch"]):
            place = tmp_path / "launches" / cohort / str(launch)
            place.mkdir(parents=True)
            (place / "launch.json").write_text("{}")
            frame(list(self._samples(rows, missing)), SAMPLES).to_parquet(place / "samples.parquet")
            slices_of(rows).to_parquet(place / "slices.parquet")

    def _samples(self, rows, missing):
        for number, window in rows.groupby("window"):
            begin, end = int(window["open_ns"].iloc[0]) - 10**8, int(window["close_ns"].iloc[0])
            for at in np.linspace(begin, end, 5).astype(int):
                for member, amount in ((LEAD, 1.0), (STREAM, 2.0)):
                    gone = number == missing and member == STREAM
                    head = {"study": "sweep", "cohort": window["cohort"].iloc[0], "window": number, "t_ns": at,
                            "launch": window["launch"].iloc[0], "source": "resctrl", "subject": member,
                            "note": "Unavailable" if gone else "", "platform": "measured"}  # fmt: skip
                    yield head | {"metric": OCCUPANCY, "value": np.nan if gone else amount * MIB}
                    yield head | {"metric": BANDWIDTH, "value": amount * 1e9}


def test_the_launch_is_the_one_with_the_median_total_rate(tmp_path):
    one = Watched(tmp_path).one
    lead = one.windows[one.windows["role"] == "lead"]
    lead = lead[lead["valid"]]
    order = lead.groupby("launch")["rate"].agg(lambda rates: 1 / (1 / rates).mean()).sort_values().index
    assert representative(one) == (lead["cohort"].iloc[0], order[1], 4)  # of four the lower one in the middle


def test_samples_windows_and_masks_stand_on_one_clock(tmp_path):
    found = timeline(Watched(tmp_path).one)
    assert found is not None
    assert found.members == [LEAD, STREAM]
    first = found.spans[0]
    assert first.open == pytest.approx(first.open - first.switch)  # the clock begins where the first scene was set
    assert found.samples["round"].unique().tolist() == [found.round]
    for span in found.spans:
        here = found.samples[found.samples["window"] == span.window]
        assert here["seconds"].min() >= span.switch - 0.11
        assert here["seconds"].max() == pytest.approx(span.close)
        assert (here["settling"] == (here["seconds"] < span.open)).all()
    masked = [span for span in found.spans if span.partition == "split-2"]
    assert masked
    assert all(span.masks[LEAD] == 0b11 for span in masked)
    places = [number for number, span in enumerate(found.spans) if number and span.partition == "split-2"]
    assert all(found.spans[number].changed for number in places if found.spans[number - 1].partition != "split-2")
    assert not found.spans[0].changed


def test_what_is_drawn_adds_up_and_a_missing_sample_is_a_gap_and_no_zero(tmp_path):
    whole = Watched(tmp_path / "a")
    window = timeline(whole.one).spans[1].window
    figure, source = timeline_figure.draw(Watched(tmp_path / "b", missing=window).one)
    levels = next(axes for axes in figure.axes if axes.get_ylabel().startswith("occupancy"))
    tops = [shape.get_paths()[0].vertices[:, 1].max() for shape in levels.collections]
    shown = source[source["drawn"]]["window"].nunique()
    assert len(tops) == 2 * (shown - 1)
    assert set(np.round(tops, 6)) == {1.0, 3.0}
    assert source.loc[(source["window"] == window) & (source["member"] == STREAM), "value"].isna().any()
    words = " ".join(text.get_text() for text in figure.texts)
    assert "a sample every" in words.replace("\n", " ")
    assert "the one with the median total rate" in timeline_figure.caption(whole.one)


def test_without_samples_the_figure_says_so():
    figure, source = timeline_figure.draw(results(atoms(ways=(2,), caps=(), sensitivity=())))
    assert source.empty
    assert "No monitor" in figure.texts[-1].get_text()


@pytest.mark.parametrize(
    ("said", "mask"), [("L3:0=00f MB:0=50", 15), ("L3CODE:0=3;1=c L3DATA:0=c;1=3", 15), ("MB:0=100", None), ("", None)]
)
def test_a_mask_is_what_the_kernel_said_of_the_first_cache(said, mask):
    assert mask_of(said) == mask


def test_the_period_is_the_middle_gap_between_samples_of_a_member(tmp_path):
    found = timeline(Watched(tmp_path).one)
    gaps = pd.Series(sorted(found.source["seconds"].unique())).diff()
    assert found.period == pytest.approx(float(gaps.median()), rel=0.01)
