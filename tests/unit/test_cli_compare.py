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
from tests.unit.snapshots import assert_as_before, refusal
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


def asked(exception_of):
    if exception_of.exception is not None:
        raise exception_of.exception


def rows_of(file):
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def other_program(member):
    return member.model_copy(update={"command": ("stream", "--size", "8M")}) if member.workload == "stream" else member


def with_other_masks(of):
    """The same plan, with another program and a cache of smaller ways."""
    launches = []
    for launch in of.launches:
        own = launch.cohort.model_copy(update={"members": tuple(map(other_program, launch.cohort.members))})
        launches.append(launch.model_copy(update={"cohort": own}))
    smaller = of.cache.model_copy(update={"way_bytes": of.cache.way_bytes // 2})
    return of.model_copy(update={"launches": tuple(launches), "cache": smaller})


def failed(folder, after, reason):
    """Its launches after this number failed."""
    for file in sorted(folder.glob("launches/*/*/launch.json")):
        record = json.loads(file.read_text())
        if record["spec"]["number"] > after:
            file.write_text(json.dumps(record | {"status": "failed", "reason": reason}))
    return folder


def daily(table):
    return table.assign(started=86_400.0 * table["launch"].astype(int))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("studies")

    def write(name, of, table, **facts):
        return study_folder.write(place / name, of, table, **facts)

    short = windows(0.4)[lambda table: table["launch"] < 3]
    few = plan([cohort("c", mix("dlrm@0", "stream@1"))], launches=4)
    strange = plan([cohort("x", mix("bert@0", "lbm@1"))], launches=3)
    swept, masked = made(atoms(), launches=3), made(atoms(ways=(3, 4), caps=(), sensitivity=()), launches=3)
    others = with_other_masks(swept)
    held = [
        {"member": who, "line": "L3", "domain": 0, "asked": f"{was:x}", "held": f"{became:x}"}
        for who, was, became in (("dlrm@0", 0x7, 0xF), ("stream@1", 0xFF8, 0xFF0), ("*", 0xFF8, 0xFF0))
    ]
    joined = {"registers": {"how": "read", "lacking": ""}, "partitions": {"split-3": held, "split-4": []}}
    (place / "empty").mkdir()
    return {
        "a": write("one", ONE, windows(0.1)),
        "b": write(
            "two", ONE, windows(0.4, 120.0), host="there", versions=study_folder.VERSIONS | {"kernel": "6.18.0"}
        ),
        "modelled": write("modelled", ONE, windows(0.4, platform="modelled")),
        # A machine in January and in February, and another one in March.
        "january": write("january", ONE, windows(0.1)),
        "february": write("february", ONE, windows(0.1, 120.0), started="2026-02-05T10:00:00+00:00"),
        "march": write("march", ONE, windows(0.4), started="2026-03-05T11:00:00+01:00", host="there"),
        "short": failed(write("short", ONE, short, host="there"), 2, "it died of SIGSEGV"),
        "none": failed(write("none", ONE, short), 0, "it died"),
        "few": write(
            "few", few, written(few, lambda launch, number, *_: math.exp(0.004 * launch.number * number)), host="x"
        ),
        "again": write("again", ONE, windows(0.2), host="elsewhere"),
        "strange": write("strange", strange, written(strange, lambda *_: 1.0)),
        # Each launch of both on another day.
        "daily": write("daily", ONE, daily(windows(0.1))),
        "later": write("later", ONE, daily(windows(0.4)), host="there"),
        "swept": write("swept", swept, partitioned(swept)),
        "others": write("others", others, partitioned(others), host="there"),
        "asked": write("asked", masked, partitioned(masked)),
        "held": write("held", masked, partitioned(masked), host="there", processor=joined),
        "same": write("same", masked, partitioned(masked), host="there"),
        "empty": place / "empty",
        "nowhere": place / "nowhere",
    }


MONTHS = ("january", "february", "march")


def test_what_it_prints(folders):
    """Who loses more, and what differs: machines, programs, masks as the processor held them, launches that failed."""
    said = {}
    for case in (
        "a b", "a modelled", "a short", "january february march", "january february march --baseline march",
        "few b again", "again b few", "swept others", "asked held", "asked same", "daily later", "daily b",
    ):  # fmt: skip
        done = compare(*(folders.get(word, word) for word in case.split()))
        assert done.exit_code == 0, done.output
        text = done.output.replace(str(folders["a"].parent), "results")
        said[case] = [line.rstrip() for line in text.splitlines() if line.strip()]
    assert_as_before("compare", said)


def test_what_cannot_be_compared_is_refused(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text("name: one\nleads: [dlrm]\nantagonists: [stream]\n")
    cases = ("a a", "a nowhere", "a empty", "a strange", "a none", "a", "january february february",
             "january february march --baseline april", "study.yaml b")  # fmt: skip
    said = {case: refusal(lambda words: asked(compare(*words)), [folders.get(word, word) for word in case.split()])
            for case in cases}  # fmt: skip
    place = str(folders["a"].parent)
    assert_as_before("compare-refusals", {case: text.replace(place, "results") for case, text in said.items()})
    study_folder.write(tmp_path / "results" / "one", ONE, windows(0.1))
    assert compare("study.yaml", folders["b"]).exit_code == 0


def test_the_folder_of_a_comparison_has_its_tables_and_a_page_by_itself(folders, tmp_path):
    out = tmp_path / "out"
    assert compare(folders["a"], folders["b"], "--output", out).exit_code == 0
    assert {row["where"] for row in rows_of(out / "comparison.csv")} == {"both"}
    page = (out / "index.html").read_text()
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|http-equiv', "", page)
    assert page.count("<svg") == 1
    assert {row["baseline"] for row in rows_of(out / "comparison-figure.csv")} == {"alone"}
    assert (out / "comparison-figure.png").stat().st_size > 10_000


def test_three_studies_are_held_against_the_first(folders, tmp_path):
    out = tmp_path / "out"
    assert compare(*(folders[month] for month in MONTHS), "--output", out).exit_code == 0
    found = {(row["letter"], row["study_a"], row["study_b"]) for row in rows_of(out / "comparison.csv")}
    assert found == {("B", "january", "february"), ("C", "january", "march")}
    means = rows_of(out / "means.csv")
    assert [row["verdict"] for row in means] == ["baseline", "unclear", "loses more in B"]
    assert float(means[2]["ratio"]) == pytest.approx(math.exp(0.3), rel=0.01)
    dates = [f"2026-0{month}-05T10:00:00+00:00" for month in (1, 2, 3)]
    history = [(row["study"], row["date"]) for row in rows_of(out / "history.csv")[::2]]
    assert history == list(zip(MONTHS, dates, strict=True))
    assert (out / "index.html").read_text().count("<svg") == 2


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


def test_nothing_is_cut_in_a_narrow_terminal_nor_in_a_pipe(folders):
    words = ["compare", str(folders["a"]), str(folders["b"])]
    narrow = CliRunner().invoke(app, words, env={"COLUMNS": "80"}).output
    table = narrow[narrow.index("against") : narrow.index("what differs")]
    assert "\N{HORIZONTAL ELLIPSIS}" not in table
    assert {"11.8", "[9.9,", "13.5]"} <= {*table.split()}
    piped = CliRunner(env={"COLUMNS": None}).invoke(app, words).output
    assert "dlrm+a-lead-with-a-very-long-name-indeed" in piped
    assert "\N{HORIZONTAL ELLIPSIS}" not in piped


def test_p_is_adjusted_over_all_studies(folders, tmp_path):
    """The same two studies, alone and beside a third one: p is the same, and its adjustment is not."""
    tables = []
    for name, studies in (("two", MONTHS[::2]), ("all", MONTHS)):
        compare(*(folders[month] for month in studies), "--output", tmp_path / name)
        rows = rows_of(tmp_path / name / "comparison.csv")
        tables.append([row for row in rows if row["study_b"] == "march" and row["baseline"] == "alone"])
    alone, beside = tables
    assert [row["p_value"] for row in alone] == [row["p_value"] for row in beside]
    least = min(range(2), key=lambda row: float(alone[row]["p_value"]))
    assert float(alone[least]["p_holm"]) == pytest.approx(2 * float(alone[least]["p_value"]))
    assert float(beside[least]["p_holm"]) == pytest.approx(4 * float(alone[least]["p_value"]))


def test_scripts_get_sentences_and_rows_of_all_studies(folders):
    said = compare(*(folders[month] for month in MONTHS), "--format", "json").output
    data = json.loads(said, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert [study["letter"] for study in data["studies"]] == [row["letter"] for row in data["means"]] == ["A", "B", "C"]
    assert data["sentences"]
    rows = {(row["letter"], row["mix"], row["member"], row["baseline"]): row for row in data["rows"]}
    row = next(row for row in rows.values() if row["role"] == "lead" and row["baseline"] == "alone")
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    assert data["differences"]["Host of the launches"] == {"A": "here", "B": "here", "C": "there"}
