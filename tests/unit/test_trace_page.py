"""The page's section on traces: the scheduler timeline, recordings, and where the time of threads went."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest

from castmates.report.figures import scheduler
from castmates.report.figures.index import figures_of
from castmates.report.figures.scheduler import coloured, shown
from castmates.report.page.common_parts import environment
from castmates.report.page.page import trace_parts
from castmates.report.results import read_results
from castmates.report.text.trace_states import REASONS, WORDS, state_words
from castmates.timeline.syscalls import _KINDS, FAULT, UNKNOWN
from castmates.timeline.tables import write
from tests.unit.makers import plan, study
from tests.unit.results_maker import make
from tests.unit.snapshots import assert_as_before
from tests.unit.timeline_maker import SCENES, SECOND, made

SOURCE = {"name": "perf", "events": {"state": 600}, "lost": 3, "alignment_ns": 1500, "reason": ""}
RECORDING = {"kind": "alone", "round": 1, "t0_ns": 0, "t1_ns": SECOND, "rate_on": 40.0, "rate_off": 50.0}
RECORDING |= {"sources": [SOURCE]}
MIX = "lead+stream"
BESIDE = f"corun:{MIX}"


def traced(folder, launches=4, name=MIX):
    """Results with a made trace beside them."""
    timeline = made(2000)
    scenes = [RECORDING | {"scene": scene} for scene in ("alone", BESIDE)]
    names = timeline.intervals["name"]
    timeline.intervals["name"] = names.cat.rename_categories({SCENES[1]: BESIDE})
    about = {"status": "measured", "study": "synthetic", "scenes": scenes, "sources": [SOURCE]}
    about |= {"missing": {"No GHz here.": ["numbers"]}}
    timeline.about.update(about)
    write(timeline, make(folder, launches=launches) / "traces" / name)
    return read_results(folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("results") / "study")


def test_the_figure_shows_equally_long_windows_alone_and_beside_others(results):
    alone, beside = shown(results)
    assert (alone.scene, beside.scene) == ("alone", BESIDE)
    assert alone.seconds == beside.seconds == pytest.approx(0.06)  # three steps of a fiftieth of a second
    for each in (alone, beside):
        times = (each.states["end_ms"] - each.states["begin_ms"]).groupby(each.states["tid"]).sum()
        assert times.tolist() == pytest.approx([60.0] * 4)  # chains without gaps
        assert each.steps_ms == pytest.approx([0, 20, 40, 60])
    figure, source = scheduler.draw(results)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["lead alone, traced", "lead beside stream, traced"]
    assert set(source["state"]) == {"running", "runnable", "preempted", "blocked"}
    assert "lead beside stream: runs" in scheduler.alternative(results)


def test_a_part_of_a_row_has_the_state_that_fills_most_of_it():
    states = pd.DataFrame(
        {"begin_ms": [0.0, 100.0, 100.4], "end_ms": [100.0, 100.4, 350.0], "state": ["running", "blocked", "running"]}
    )
    assert coloured(states, 700.0) == [(0.0, 350.0, "running")]
    states = pd.DataFrame({"begin_ms": [0.0, 200.0], "end_ms": [100.0, 300.0], "state": ["running", "blocked"]})
    assert coloured(states, 700.0) == [(0.0, 100.0, "running"), (200.0, 100.0, "blocked")]
    states = pd.DataFrame({"begin_ms": [0.0, 0.4], "end_ms": [0.4, 1.0], "state": ["running", "unknown"]})
    assert coloured(states, 700.0) == []


def text_of(results):
    template = "{% for trace_part in parts %}{% include trace_part.template %}{% endfor %}"
    html = environment().from_string(template).render(parts=trace_parts(results), first="")
    return html, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_the_section_has_recordings_losses_and_states(results):
    (results.folder.trace(MIX) / "open.html").touch()
    (results.folder.trace(MIX) / "flame-lead@0-difference.svg").touch()
    html, text = text_of(results)
    assert re.findall(r'href="\.\./traces/([^"]+)"', html) == [f"{MIX}/open.html", f"{MIX}/flame-lead@0-difference.svg"]
    text = text.replace(str(results.folder.path), "STUDY")
    assert_as_before("trace-section", {"made": re.split(r"(?<=[.;:]) ", text)})


def test_a_trace_that_failed_is_a_sentence_and_a_study_without_any_has_no_section(tmp_path):
    folder = make(tmp_path / "study")
    assert trace_parts(read_results(folder)) == []
    planned = replace(read_results(folder), plan=plan(study(["lead"], ["stream", "compute"])))
    assert "scheduler" not in figures_of(planned.plan, planned.folder)
    place = folder / "traces" / MIX
    place.mkdir(parents=True)
    (place / "trace.json").write_text(json.dumps({"status": "failed", "reason": "stream ended"}))
    results = read_results(folder)
    assert "The trace of lead+stream failed: stream ended." in text_of(results)[1]
    assert scheduler.lacking(results)


def test_a_trace_without_scenes_is_shown_as_one_and_compared_with_nothing(tmp_path):
    timeline = made(400)
    kept = ~timeline.intervals["kind"].isin(["scene", "recording"])
    timeline = replace(timeline, intervals=timeline.intervals[kept].reset_index(drop=True))
    timeline.about.update(status="imported")
    write(timeline, make(tmp_path / "study", launches=2) / "traces" / MIX)
    results = read_results(tmp_path / "study")
    figure, _ = scheduler.draw(results)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["lead, traced"]
    assert "beside" not in scheduler.caption(results)
    assert "waits for another thread (futex)" in text_of(results)[1]


def test_every_kind_of_wait_that_perf_shows_has_words():
    assert {*_KINDS, UNKNOWN, FAULT} <= {*REASONS}
    assert state_words("blocked", "") == state_words("blocked", "unknown") == "waits, for what is not known"
    assert state_words("blocked", "msgrcv") == "waits in msgrcv"
    assert scheduler.WORDS is WORDS
