"""A study of which every measurement was thrown away still gets its whole page, which says so and what to do."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from castmates.pipeline.analyse import Terms, write_tables
from castmates.report.answer.answer import answer
from castmates.report.answer.cards import rejected_card, remedy, thrown_away
from castmates.report.answer.parts import answer_lines
from castmates.report.figures.drawing import draw_figures
from castmates.report.figures.index import all_figures
from castmates.report.page.page import shown, write_page
from castmates.report.results import read_results
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.study.model import Study
from castmates.study.reading import read_keys
from castmates.study.reasons import NOT_VISIBLE, Reason, ReasonKind, reason_columns
from tests.golden.report import MARGIN, STUDY, content, unpack

REASON = Reason(ReasonKind.FOREIGN_LOAD, "others took 41 % of CPU 1, mostly bash (pid 7)", "bash (pid 7)")
WHY = reason_columns([REASON])


def reject(launch, chosen):
    """Reject these windows of a launch in its tables and its record, as the runner writes what no slice counts of."""
    windows, steps = (pd.read_parquet(launch / f"{name}.parquet") for name in ("windows", "steps"))
    lost = chosen(windows)
    nothing = {"slices_dropped": 0, "open_s": 0.0, "progress_s": np.nan, "units": np.nan, "rate": np.nan, "beats": 0}
    windows.loc[lost, ["valid", *WHY, *nothing]] = [False, *WHY.values(), *nothing.values()]
    windows.loc[lost, ["first_ns", "last_ns", "later"]] = pd.NA, pd.NA, np.nan
    windows.loc[lost, "slices_rejected"] = windows["slices"]
    windows.to_parquet(launch / "windows.parquet")
    gone = set(windows.loc[lost, "window"])
    steps[~steps["window"].isin(gone)].to_parquet(launch / "steps.parquet")
    slices = pd.read_parquet(launch / "slices.parquet")
    slices.loc[slices["window"].isin(gone), ["counted", *WHY]] = False, *WHY.values()
    slices.to_parquet(launch / "slices.parquet")
    if lost.all():
        record = json.loads((launch / "launch.json").read_text())
        ledger = record["ledger"]
        ledger |= {"rejected": ledger["windows"], "because": {"foreign load": ledger["windows"]}}
        ledger |= {"slices_rejected": ledger["slices"], "slices_because": {"foreign load": ledger["slices"]}}
        record |= {"rounds": 0, "windows_rejected": record["windows"], "ledger": ledger | {"slices_dropped": {}}}
        (launch / "launch.json").write_text(json.dumps(record))


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frozen")
    unpack(folder)
    return folder


@pytest.fixture
def analysed(golden, tmp_path):
    """The golden study with some windows rejected, analysed."""

    def made(chosen):
        folder = tmp_path / "golden"
        shutil.copytree(golden, folder)
        for record in folder.glob("launches/*/*/launch.json"):
            reject(record.parent, chosen)
        study, plan = read_keys(Study, STUDY.read_text(), STUDY.name), read_plan(folder / "plan.json")
        machine = json.loads((folder / "machine.json").read_bytes())
        terms = Terms(MARGIN, study.attribution.isolated, machine, limit_pct=study.recommend.lead_loss)
        write_tables(plan, StudyFolder(folder), terms, folder / "tables")
        return read_results(folder, STUDY)

    return made


def written(results):
    """The study's page, with all its figures, as text by section."""
    folder = results.folder.path
    draw_figures(shown(results), results, folder / "figures")
    write_page(results, folder / "figures", folder / "report/index.html")
    return content((folder / "report/index.html").read_text())


@pytest.mark.landing
def test_where_every_measurement_was_thrown_away_the_page_is_whole_and_names_the_remedy(analysed):
    results = analysed(lambda windows: windows["valid"] | True)
    page = written(results)
    first, found = " ".join(page["sections"]["result"]), answer(results)
    assert found.headline in page["headings"]
    assert found.headline.startswith("No window is left: all ")
    assert f"castmates sweep {STUDY} --retry" in found.command
    assert (
        "To get a result: stop the other programs on this machine (bash), then measure these launches again." in first
    )
    assert "100 % of the measuring was thrown away" in first
    assert any(line.startswith("To get a result: stop") for line in answer_lines(found))
    assert all(pair.verdict == "no data" for pair in found.pairs)


@pytest.mark.landing
def test_programs_outside_of_a_container_are_to_be_stopped_too(analysed, monkeypatch):
    taken = [Reason(ReasonKind.FOREIGN_LOAD, "others took 41 %", who) for who in (NOT_VISIBLE, "make (pid 7)")]
    monkeypatch.setitem(globals(), "WHY", reason_columns(taken))
    results = analysed(lambda windows: windows["valid"] | True)
    assert remedy(thrown_away(results)).endswith("(a process that is not visible here, make)")


@pytest.mark.landing
def test_time_that_no_slice_counts_for_makes_no_endless_share(analysed):
    """What was taken is divided by the time for which windows count; that is none here."""
    results = analysed(lambda windows: windows["valid"] | True)
    samples = pd.DataFrame()
    for file in results.folder.path.glob("launches/*/*/samples.parquet"):
        samples = pd.read_parquet(file)
        row = samples.iloc[:1].assign(source="cputime", subject="1", metric="foreign_s", value=0.2, note="bash (pid 7)")
        pd.concat([samples, row], ignore_index=True).astype(dict(samples.dtypes)).to_parquet(file)
    assert len(samples)
    draw_figures(["health", "windows"], read_results(results.folder.path, STUDY), results.folder.path / "figures")


@pytest.mark.parametrize(
    "kept",
    [lambda windows: windows["kind"] == "alone-again", lambda windows: windows["partition"] == "split-4"],
    ids=["alone-again", "one partition"],
)
def test_what_is_left_after_most_was_thrown_away_is_analysed_and_drawn(analysed, kept):
    results = analysed(lambda windows: ~kept(windows))
    for name in shown(results):
        drawn, _ = all_figures()[name].module.draw(results)
        assert drawn.axes or drawn.texts


def test_measurements_that_are_rejected_without_a_disturbed_slice_were_thrown_away_too(analysed):
    folder = analysed(lambda windows: ~windows["valid"]).folder.path
    for file in folder.glob("launches/*/*/launch.json"):
        record = json.loads(file.read_text())
        filling = {"rejected": {"corun": 2}, "because": {"still filling": {"corun": 2}}}
        record["ledger"] |= filling | {"slices_rejected": {}, "slices_because": {}, "slices_dropped": {}}
        file.write_text(json.dumps(record))
    lost = thrown_away(read_results(folder, STUDY))
    assert lost.windows_lost == lost.because["still filling"] > 0
    assert lost.share == pytest.approx(lost.windows_lost / lost.windows)
    card = rejected_card(read_results(folder, STUDY))
    assert f"{lost.windows_lost} of {lost.windows} windows were rejected because emptied caches" in card.text
