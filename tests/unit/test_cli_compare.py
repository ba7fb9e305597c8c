"""`castmates compare A B …`: what it prints and writes, and what it refuses."""

import csv
import json
import math
import re

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.report.comparison import page as folder
from tests.unit import study_folder
from tests.unit.partition_maker import atoms, made
from tests.unit.partition_maker import windows as partitioned
from tests.unit.windows_maker import cohort, mix, plan, written

ONE = plan([cohort("c", mix("dlrm@0", "stream@1"), mix("dlrm@0", "a-lead-with-a-very-long-name-indeed@2"))], launches=4)


def windows(loss, speed=100.0, platform="measured"):
    def rate(launch, number, scene, member):
        return speed * math.exp(
            0.004 * launch.number * number - (loss + 0.01 * launch.number) * scene.startswith("corun")
        )

    return written(ONE, rate, platform=platform)


def compare(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], env={"COLUMNS": "400"})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("studies")
    versions = study_folder.VERSIONS | {"kernel": "6.18.0"}
    return {
        "a": study_folder.write(place / "one", ONE, windows(0.1)),
        "b": study_folder.write(place / "two", ONE, windows(0.4, 120.0), host="there", versions=versions),
        "modelled": study_folder.write(place / "three", ONE, windows(0.4, platform="modelled")),
    }


def test_it_says_who_loses_more_and_what_differs(folders, tmp_path):
    done = compare(folders["a"], folders["b"], "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert (
        "dlrm beside stream loses 11.8 % [9.9, 13.5] in A and 34.6 % [33.3, 36.0] in B, in 4 and 4 launches"
        in done.output
    )
    assert "its slowdown is 35.0 % [32.0, 38.0] larger in B" in done.output
    assert "Alone, dlrm makes 1.200 [1.179, 1.222] times as many units (step) a second in B" in done.output
    assert "0.889 [0.885, 0.893] beside stream" in done.output
    assert "B is faster alone, but loses more beside stream" in done.output
    assert "Counters" not in done.output, "neither study has a table of them"
    assert re.search(r"Version of kernel +6\.1\.0 +6\.18\.0", done.output)
    assert re.search(r"Host of the launches +here +there", done.output)
    rows = list(csv.DictReader((tmp_path / "out" / "comparison.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["where"] for row in rows} == {"both"}
    page = (tmp_path / "out" / "index.html").read_text()
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|http-equiv', "", page)
    assert page.count("<svg") == 1
    assert "loses more in B" in page
    drawn = list(csv.DictReader((tmp_path / "out" / "comparison-figure.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["baseline"] for row in drawn} == {"alone"}
    assert (tmp_path / "out" / "comparison-figure.png").stat().st_size > 10_000


def test_the_same_folder_takes_the_next_comparison_and_no_other_folder_is_written_over(folders, tmp_path):
    ours, report = tmp_path / "out", tmp_path / "report"
    ours.mkdir()
    (ours / "comparison.csv").write_text("mix,slowdown_a\n")
    (report / "data").mkdir(parents=True)
    (report / "index.html").write_text("somebody's page")
    with pytest.raises(CastmatesError, match=r"\(data, index.html\), and no comparison.csv that `castmates compare`"):
        raise compare(folders["a"], folders["b"], "--output", report).exception
    assert (report / "index.html").read_text() == "somebody's page"
    folder.may_write(ours)
    with pytest.raises(CastmatesError, match="is a file; give --output the name of a folder"):
        raise compare(folders["a"], folders["b"], "--output", ours / "comparison.csv").exception


def test_what_failed_on_one_side_is_told(folders, tmp_path):
    short = windows(0.4)
    other = study_folder.write(tmp_path / "two", ONE, short[short["launch"] < 3], host="there")
    for file in sorted(other.glob("launches/*/*/launch.json")):
        record = json.loads(file.read_text())
        if record["spec"]["number"] > 2:
            file.write_text(json.dumps(record | {"status": "failed", "reason": "it died of SIGSEGV"}))
    done = compare(folders["a"], other)
    for file in other.glob("launches/*/*/launch.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"status": "failed", "reason": "it died"}))
    with pytest.raises(CastmatesError, match=r"two: each of its 4 launches failed \(it died\); put that right"):
        raise compare(folders["a"], other).exception
    assert "2 launches, measured, on there; 2 more failed (it died of SIGSEGV)." in done.output
    assert "too few launches (4 and 2 launches) to compare them" in done.output
    assert re.search(r"too few launches +4, 2", done.output)
    assert "Machines, versions or designs differ too, as recorded: Host of the launches." in done.output


def test_nothing_is_cut_in_a_narrow_terminal_nor_in_a_pipe(folders):
    words = ["compare", str(folders["a"]), str(folders["b"])]
    narrow = CliRunner().invoke(app, words, env={"COLUMNS": "80"}).output
    table = narrow[narrow.index("against") : narrow.index("what differs")]
    assert "\N{HORIZONTAL ELLIPSIS}" not in table
    assert {"11.8", "[9.9,", "13.5]"} <= {*table.split()}
    piped = CliRunner(env={"COLUMNS": None}).invoke(app, words).output
    assert "dlrm+a-lead-with-a-very-long-name-indeed" in piped
    assert "\N{HORIZONTAL ELLIPSIS}" not in piped
    assert (
        "• dlrm beside stream loses 11.8 % [9.9, 13.5] in A and 34.6 % [33.3, 36.0] in B, in 4 and 4 launches" in piped
    )


def test_platforms_are_loudly_kept_apart(folders):
    done = compare(folders["a"], folders["modelled"])
    assert done.exit_code == 0
    assert done.output.startswith("PARTLY MODELLED (NOT MEASURED)")
    assert "no interval contains both" in done.output
    assert "larger in B" not in done.output


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ("a", "are not independent: 4 of A's 4 launches are B's too"),
        ("nowhere", "there is neither a study file nor a results folder of this name"),
        ("empty", "there is no plan.json in it"),
    ],
)
def test_what_cannot_be_compared_is_refused(folders, tmp_path, monkeypatch, other, sentence):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CastmatesError, match=re.escape(sentence)):
        raise compare(folders["a"], folders.get(other, tmp_path / other)).exception


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A machine in January and in February, and another one in March."""
    place = tmp_path_factory.mktemp("three")
    return [
        study_folder.write(place / "january", ONE, windows(0.1)),
        study_folder.write(place / "february", ONE, windows(0.1, 120.0), started="2026-02-05T10:00:00+00:00"),
        study_folder.write(place / "march", ONE, windows(0.4), started="2026-03-05T11:00:00+01:00", host="there"),
    ]


def test_three_studies_are_held_against_the_first(three, tmp_path):
    done = compare(*three, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "B against A: of 2 mixes 2 are unclear." in done.output
    assert "C against A: of 2 mixes 2 lose more than in A (dlrm beside stream, dlrm beside a-lead-" in done.output
    assert "Geometric mean of the slowdowns of the 2 mixes that all studies have: 1.13" in done.output
    assert "These are 4 comparisons, pairs times studies" in done.output
    assert re.search(r"Host of the launches +here +here +there", done.output)
    rows = list(csv.DictReader((tmp_path / "out" / "comparison.csv").read_text(encoding="utf-8").splitlines()))
    assert {(row["letter"], row["study_a"], row["study_b"]) for row in rows} == {
        ("B", "january", "february"), ("C", "january", "march")
    }  # fmt: skip
    means = list(csv.DictReader((tmp_path / "out" / "means.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["verdict"] for row in means] == ["baseline", "unclear", "loses more in B"]
    assert float(means[2]["ratio"]) == pytest.approx(math.exp(0.3), rel=0.01)
    history = list(csv.DictReader((tmp_path / "out" / "history.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["study"], row["date"]) for row in history[::2]] == [
        ("january", "2026-01-05T10:00:00+00:00"),
        ("february", "2026-02-05T10:00:00+00:00"),
        ("march", "2026-03-05T10:00:00+00:00"),
    ]
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("<svg") == 2
    assert "C march" in page


def test_p_is_adjusted_over_all_studies(three, tmp_path):
    """The same two studies, alone and beside a third one: p is the same, and its adjustment is not."""
    tables = []
    for name, studies in (("two", three[::2]), ("all", three)):
        compare(*studies, "--output", tmp_path / name)
        rows = csv.DictReader((tmp_path / name / "comparison.csv").read_text(encoding="utf-8").splitlines())
        tables.append([row for row in rows if row["study_b"] == "march" and row["baseline"] == "alone"])
    alone, beside = tables
    assert [row["p_value"] for row in alone] == [row["p_value"] for row in beside]
    least = min(range(2), key=lambda row: float(alone[row]["p_value"]))
    assert float(alone[least]["p_holm"]) == pytest.approx(2 * float(alone[least]["p_value"]))
    assert float(beside[least]["p_holm"]) == pytest.approx(4 * float(alone[least]["p_value"]))


@pytest.mark.parametrize("name", ["march", "path"])
def test_any_of_them_may_be_the_baseline(three, name):
    done = compare(*three, "--baseline", three[2] if name == "path" else name)
    assert "A is march" in done.output
    assert "B is january" in done.output
    assert "C against A: of 2 mixes 2 lose less than in A" in done.output


def test_a_baseline_that_is_not_there_is_refused(three):
    with pytest.raises(CastmatesError, match="--baseline is 'april', which is none of the studies that are compared"):
        raise compare(*three, "--baseline", "april").exception


def test_one_study_is_nothing_to_compare(three):
    with pytest.raises(CastmatesError, match="compare takes 2 to 26 studies, and 1 is given"):
        raise compare(three[0]).exception


def test_a_copy_among_several_is_refused(three):
    with pytest.raises(CastmatesError, match="4 of B's 4 launches are C's too"):
        raise compare(*three[:2], three[1]).exception


def test_scripts_get_sentences_and_rows_of_all_studies(three):
    data = json.loads(
        compare(*three, "--format", "json").output, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")
    )
    assert [study["letter"] for study in data["studies"]] == ["A", "B", "C"]
    assert {row["letter"] for row in data["rows"]} == {"B", "C"}
    assert data["sentences"]
    assert [row["letter"] for row in data["means"]] == ["A", "B", "C"]


def test_nothing_in_common_is_refused(folders, tmp_path):
    strange = plan([cohort("x", mix("bert@0", "lbm@1"))], launches=3)
    other = study_folder.write(tmp_path / "strange", strange, written(strange, lambda *_: 1.0))
    with pytest.raises(CastmatesError, match=r"nothing in common|no mix, member and baseline in common"):
        raise compare(folders["a"], other).exception


def test_a_study_file_stands_for_its_results(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "study.yaml"
    file.write_text("name: one\nleads: [dlrm]\nantagonists: [stream]\n")
    with pytest.raises(CastmatesError, match="this study has no results in results/one yet"):
        raise compare(file, folders["b"]).exception
    study_folder.write(tmp_path / "results" / "one", ONE, windows(0.1))
    assert compare(file, folders["b"]).exit_code == 0


def test_other_programs_and_other_masks_are_told(tmp_path):
    plan_a, plan_b = made(atoms(), launches=3), made(atoms(), launches=3)
    launches = tuple(
        launch.model_copy(
            update={
                "cohort": launch.cohort.model_copy(
                    update={
                        "members": tuple(
                            member.model_copy(update={"command": ("stream", "--size", "8M")})
                            if member.workload == "stream"
                            else member
                            for member in launch.cohort.members
                        )
                    }
                )
            }
        )
        for launch in plan_b.launches
    )
    smaller = plan_b.cache.model_copy(update={"way_bytes": plan_b.cache.way_bytes // 2})
    plan_b = plan_b.model_copy(update={"launches": launches, "cache": smaller})
    a = study_folder.write(tmp_path / "one", plan_a, partitioned(plan_a))
    b = study_folder.write(tmp_path / "two", plan_b, partitioned(plan_b), host="there")
    done = compare(a, b)
    assert done.exit_code == 0, done.output
    assert "Not the same in A and B: stream in dlrm+stream: command; they may be behind a difference." in done.output
    assert re.search(r"stream in dlrm\+stream: command +stream +stream --size 8M", done.output)
    assert "of the same name give something else in B: split-2 of dlrm+stream gives dlrm 0x3 (2 ways" in done.output
    assert "Under partitions both have" in done.output


def test_scripts_get_the_rows_of_the_tables(folders):
    done = compare(folders["a"], folders["b"], "--format", "json")
    data = json.loads(done.output)
    assert [study["letter"] for study in data["studies"]] == ["A", "B"]
    rows = {(row["mix"], row["member"], row["baseline"]): row for row in data["rows"]}
    row = next(row for row in rows.values() if row["role"] == "lead" and row["baseline"] == "alone")
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    assert data["differences"]["Host of the launches"] == {"A": "here", "B": "there"}


def test_pairs_that_only_the_baseline_lacks_are_counted_and_named(folders, tmp_path):
    few = plan([cohort("c", mix("dlrm@0", "stream@1"))], launches=4)

    def rate(launch, number, scene, member):
        return 100 * math.exp(0.004 * launch.number * number)

    first = study_folder.write(tmp_path / "few", few, written(few, rate), host="another")
    second = study_folder.write(tmp_path / "again", ONE, windows(0.2), host="elsewhere")
    done = compare(first, folders["b"], second)
    assert done.exit_code == 0, done.output
    sentence = "1 mix that A lacks and several of B and C have: dlrm beside a-lead-with-a-very-long-name-indeed;"
    assert sentence in done.output
    assert f"{sentence} `castmates compare` with another --baseline compares it." in done.output
    assert "mix that A lacks" not in compare(second, folders["b"], first).output
    assert "mix that A lacks" not in compare(folders["a"], folders["b"], second).output


def test_masks_are_compared_as_the_processor_held_them(tmp_path):
    """B's processor joined two ways: what was asked is the same in both, and what was held is not."""
    asked = made(atoms(ways=(3, 4), caps=(), sensitivity=()), launches=3)
    rows = [("dlrm@0", 0x7, 0xF), ("stream@1", 0xFF8, 0xFF0), ("*", 0xFF8, 0xFF0)]
    held = [
        {"member": who, "line": "L3", "domain": 0, "asked": f"{was:x}", "held": f"{became:x}"}
        for who, was, became in rows
    ]
    joined = {"registers": {"how": "read", "lacking": ""}, "partitions": {"split-3": held, "split-4": []}}
    one = study_folder.write(tmp_path / "one", asked, partitioned(asked))
    two = study_folder.write(tmp_path / "two", asked, partitioned(asked), host="there", processor=joined)
    done = compare(one, two, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert (
        "1 partition of the same name gives something else in B: split-3 of dlrm+stream gives dlrm 0x7" in done.output
    )
    assert "dlrm 0xf (4 ways" in done.output
    assert "split-3 and split-4 are one partition in B: the processor held the same under each." in done.output
    page = (tmp_path / "out/index.html").read_text()
    assert "split-3 and split-4 are one partition in B" in page
    same = compare(one, study_folder.write(tmp_path / "three", asked, partitioned(asked), host="there"))
    assert "something else" not in same.output
    assert "are one partition" not in same.output
