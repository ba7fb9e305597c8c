"""What to do next: the command that is offered can be run; launches after a look are judged more strictly."""

import json
import math
import re
import shlex
from dataclasses import replace

import pandas as pd
import pytest

from castmates.analysis.effects.verdicts import EXTENDED_LEVEL, effect_verdicts
from castmates.cli.main import COMMANDS
from castmates.errors import CastmatesError
from castmates.report.answer.answer import answer
from castmates.report.answer.cards import cards
from castmates.report.answer.parts import answer_lines
from castmates.report.results import read_results
from castmates.results.asked import (
    asked_launches,
    looks_before,
    profile_looks_before,
    remember_launches,
    remember_look,
    remember_profile_look,
)
from castmates.results.folder import StudyFolder
from castmates.study.rounds import checked_launches
from tests.unit.makers import plan
from tests.unit.makers import study as written
from tests.unit.results_maker import make
from tests.unit.snapshots import assert_as_before
from tests.unit.test_answer import FEW, HOPED, LOSING, MISSING, NEARLY, OPEN, SAME, named, told

CLOSE = ("unclear", 0.5, -1.5, 2.5)
FAR = ("unclear", 0.1, -30.0, 30.0)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return read_results(make(tmp_path_factory.mktemp("answers") / "study", ["a", "b"], ["x", "y"], launches=5))


@pytest.mark.parametrize("rows", [(NEARLY, OPEN, SAME, SAME), (HOPED, SAME, SAME, SAME), (CLOSE, FAR, LOSING, SAME),
                                  (FEW, FEW, FEW, FEW), (FEW, MISSING, SAME, SAME)])  # fmt: skip
@pytest.mark.parametrize("launches", [3, 5, 9, 40])
def test_the_command_that_is_offered_asks_for_launches_that_the_study_can_have(study, rows, launches):
    known = named(told(study, *rows), launches=launches)
    found = answer(known)
    assert found.settle.feasible
    assert found.command.startswith("castmates sweep s.yaml")
    asked = re.search(r"--launches (\d+)$", found.command)
    if launches > 5:
        assert not asked, "planned launches come first"
        assert "has planned" in found.settling
    else:
        assert checked_launches(asked[1], known.study, "s.yaml") == found.settle.launches > 5


def test_where_a_precision_decides_no_number_is_asked_for(study):
    known = named(told(study, NEARLY, OPEN, SAME, SAME), precision="1%")
    found = answer(known)
    with pytest.raises(CastmatesError):
        checked_launches(found.settle.launches, known.study, "s.yaml")
    assert found.command == "castmates sweep s.yaml"
    assert f"set `most_launches` to at least {found.settle.launches}" in found.settling


def test_failed_launches_are_discarded_before_the_planned_ones_are_measured(tmp_path):
    results = read_results(make(tmp_path / "study", ["a"], ["x", "y"], launches=5, failed=3))
    found = answer(replace(named(results), study_file="it's.yaml"))
    quoted = shlex.quote("it's.yaml")
    assert found.command == f"castmates sweep {quoted} --retry"
    assert found.below.endswith("3 of 5 launches failed.")
    (card,) = [card for card in found.cards if "failed" in card.title]
    assert f"`castmates sweep {quoted} --retry`" in card.text


def test_without_the_study_file_there_is_no_command_and_what_takes_it_is_named(study):
    found = answer(told(study, NEARLY, OPEN, SAME, SAME))
    assert found.command == ""
    assert "The study file is not known here" in found.settling
    assert not any("To settle it" in line for line in answer_lines(found))


def test_a_hopeless_pair_does_not_hide_what_settles_the_others(study):
    found = answer(named(told(study, CLOSE, FAR, SAME, SAME)))
    assert "for 1 of 2 mixes (a beside y would take more than 100 launches)" in found.settling
    assert found.command


def test_the_offered_command_is_one_that_exists(study):
    words = answer(named(told(study, NEARLY, OPEN, SAME, SAME))).command.split()
    assert words[1] in {one.name for one in COMMANDS}


def judged(results, *changes):
    controls = results.controls.copy()
    for control, verdict, ratio in changes:
        chosen = controls.index[controls["control"] == control][0]
        numbers = (verdict, ratio, ratio - 0.01, ratio + 0.01)
        controls.loc[chosen, ["verdict", "ratio", "ratio_low", "ratio_high"]] = numbers
    return replace(results, controls=controls)


def of_kinds(results):
    extra = {"control": ["negative", "positive"], "mix": "c@0+compute@1", "lead": "c", "study_lead": False}
    kept = results.controls[~results.controls["control"].isin(["negative", "positive"])]
    controls = pd.concat([kept, results.controls.iloc[[0, 0]].assign(**extra)], ignore_index=True)
    return replace(results, controls=controls)


def test_what_controls_and_failed_launches_make_of_an_answer(study, tmp_path):
    """Who is blamed: the control that was off, and no program beside it."""
    same = told(of_kinds(study), SAME, SAME, SAME, SAME)
    missed = judged(same, ("positive", "no sensitivity shown here", 1.001))
    again = same.controls[same.controls["control"] == "positive"].assign(mix="d@0+stream@1", verdict="sensitive")
    bare = told(study, SAME, SAME, SAME, SAME)
    unknown = replace(bare, controls=bare.controls.assign(ratio_low=math.nan, ratio_high=math.nan))
    quiet = study.controls[study.controls["control"] == "A/A"].assign(ratio_low=0.99754, ratio_high=1.001, ratio=1.0)
    failed = read_results(make(tmp_path / "study", ["a", "b"], ["x"], launches=3))
    status = ["failed" if lead == "b" else "measured" for lead in failed.launches["lead"]]
    studies = {
        "a negative control is unstable": judged(same, ("negative", "unstable", 1.05)),
        "a lead is unstable, and no other noise is known": judged(unknown, ("A/A", "unstable", 1.07)),
        "a positive control was missed": missed,
        "of two positive controls one was missed": replace(missed, controls=pd.concat([missed.controls, again])),
        "noise is rounded up": replace(study, controls=quiet.assign(verdict="passes")),
        "a program failed in every launch": replace(failed, launches=failed.launches.assign(status=status)),
    }
    said = {}
    for name, results in studies.items():
        found = answer(results)
        said[name] = [found.headline, found.below, *(f"{c.state}: {c.title}. {c.text}" for c in cards(results))]
    assert_as_before("answer-controls", said)


def crowded(results, *points):
    """The results in which other programs took so many points beside each antagonist, proven."""
    effects = results.effects.copy()
    places = effects.index[(effects["role"] == "lead") & (effects["baseline"] == "alone")]
    for place, point in zip(places, points, strict=False):
        effects.loc[place, ["others_points", "others_low", "others_high"]] = point, point - 0.3, point + 0.3
        effects.loc[place, "others_seen"] = True
    return replace(results, effects=effects)


def test_what_other_programs_took_is_told_of_the_pair_that_it_matters_to_most(study):
    said = {}
    for points in ((0.8,), (0.6, 1.25), (0.6, 1.25, 0.9)):
        found = [card for card in cards(crowded(study, *points)) if card not in cards(study)]
        said[str(points)] = [f"{c.state}: {c.title}. {c.text}" for c in found]
    assert_as_before("answer-others", said)


def test_an_extended_study_proves_less_and_shows_why(study):
    table = pd.DataFrame({"mean": [0.1, 0.1], "low": 0.05, "high": 0.15, "p_holm": [0.01, 0.001], "launches": 9})
    assert effect_verdicts(table, 0.02) == ["loss", "loss"]
    assert effect_verdicts(table, 0.02, EXTENDED_LEVEL) == ["unclear", "loss"]
    found = answer(replace(told(study, NEARLY, SAME, SAME, SAME), extended=(5, 9)))
    assert (
        "after a look at the results with 5 and 9 launches, so a loss counts as proven below p = 0.0025" in found.below
    )
    (pair,) = [pair for pair in found.pairs if pair.state == "suspected loss"]
    assert pair.note == "suspected loss, not proven: the study was extended, so p must be below 0.0025"


def test_a_look_is_kept_when_launches_are_added_to_results(tmp_path):
    folder = StudyFolder(tmp_path / "new")
    few, more = (plan(written(["x"], ["a"], budget={"launches": launches, "rounds": 2})) for launches in (5, 12))
    remember_look(folder, few, more)
    assert looks_before(folder) == (), "nothing was there to look at"
    folder.tables.mkdir(parents=True)
    folder.table_file("effects").touch()
    remember_look(folder, few, few)
    remember_look(folder, more, few)
    assert looks_before(folder) == ()
    remember_launches(folder, 12)
    for _ in range(2):
        remember_look(folder, few, more)
    remember_launches(folder, 15)
    assert looks_before(folder) == (5,)
    assert asked_launches(folder) == 15
    assert json.loads(folder.asked_file.read_text()) == {"launches": 15, "looks": [5]}


def test_a_look_at_operations_is_kept_whether_or_not_their_tables_are_there(tmp_path):
    (folder := StudyFolder(tmp_path / "new")).path.mkdir()
    for launches, looks in ((3, ()), (3, ()), (6, (3,)), (6, (3,)), (12, (3, 6)), (3, (3, 6)), (6, (3, 6))):
        remember_profile_look(folder, launches)
        assert profile_looks_before(folder) == looks


def test_a_narrow_terminal_gets_short_lines_and_notes_below_their_rows(study):
    found = answer(named(told(study, NEARLY, OPEN, ("loss", 3.0, 2.0, 4.0), SAME)))
    narrow, wide = (list(answer_lines(found, width)) for width in (60, 100))
    assert max(map(len, narrow)) <= 75, "rows of the table are whole"
    assert_as_before("answer-terminal", {"60 columns": narrow, "100 columns": wide})


def test_variants_of_a_lead_can_be_told_apart_and_a_note_of_many_rows_is_printed_once(study):
    found = answer(named(told(study, NEARLY, NEARLY, NEARLY, SAME)))
    names = [f"mobilenetv2-infer-memory.{variant}" for variant in ("bf16", "xla", "onednn-off", "batch-32")]
    renamed = replace(found, pairs=[replace(pair, program=name) for pair, name in zip(found.pairs, names, strict=True)])
    for width in (60, 100):
        lines = [*answer_lines(renamed, width)]
        rows = [line for line in lines if "beside" in line and "%" in line and line.startswith("  mobilenet")]
        assert [name.rsplit(".", 1)[1] for name in names] == [row.split()[0].rsplit(".", 1)[1] for row in rows]
        assert sum("not proven" in line for line in lines) == 1
    assert all(name in "\n".join(lines) for name in names), "a wide terminal has whole names"
