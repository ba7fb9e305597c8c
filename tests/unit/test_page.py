"""The page is whole, stands alone, is accessible, and shows what the tables hold."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.report.figures.index import FIGURES, figures_of
from castmates.report.launch_record import Settled
from castmates.report.page.page import page, write_page
from castmates.report.results import read_results
from castmates.report.text import design as plan
from castmates.report.text import health
from castmates.report.text.stamps import caveat, stamps
from tests.unit.results_maker import MACHINE, make, record
from tests.unit.snapshots import assert_as_before

VOID = {"meta", "link", "br", "hr", "img", "input", "col"}
SCRIPTS = Path(__file__).parents[2] / "scripts"


class Reader(HTMLParser):
    """Collects what the tests ask for, and refuses tags that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.attributes, self.words, self.headings = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))
        if tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another tag in line {self.getpos()[0]}"

    def handle_data(self, data):
        self.words.append(data)

    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.attributes if name == tag]


def parsed(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def words_of(folder):
    """The page's words, without the trouble of drawing."""
    return parsed(page(read_results(folder), dict.fromkeys(FIGURES, "<svg></svg>"))).text()


@pytest.fixture(scope="module")
def written(drawn_study, tmp_path_factory):
    """The file of the page of made-up results, all of its figures drawn."""
    output = tmp_path_factory.mktemp("study") / "report" / "index.html"
    write_page(read_results(drawn_study, drawn_study / "study.yaml"), drawn_study / "figures", output)
    return output


@pytest.fixture(scope="module")
def usual(drawn_study, written):
    """That page, parsed, and the results that it shows."""
    return parsed(written.read_text(encoding="utf-8")), read_results(drawn_study, drawn_study / "study.yaml")


def test_nothing_is_loaded_from_elsewhere(usual):
    reader, _ = usual
    for tag, attributes in reader.attributes:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            target = attributes.get(name) or ""
            assert not target.startswith(("http:", "https:", "//")), (tag, target)
    assert "@import" not in reader.text()


def test_ids_are_unique_though_three_figures_share_the_page(usual):
    reader, _ = usual
    ids = [attributes["id"] for _, attributes in reader.attributes if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes.get("href", "") for attributes in reader.all("a")]
    assert {target[1:] for target in targets if target.startswith("#")} <= set(ids)


def test_a_title_cannot_smuggle_in_a_script(usual):
    reader, _ = usual
    assert len(reader.all("script")) == 1
    assert "A <script>alert(1)</script> & study" in reader.text()


def test_it_is_accessible(usual):
    reader, results = usual
    assert reader.all("html")[0]["lang"] == "en-GB"
    assert reader.headings[0] == 1
    assert reader.headings.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in zip(reader.headings, reader.headings[1:], strict=False))
    drawings = [attributes for attributes in reader.all("div") if attributes.get("role") == "img"]
    names = figures_of(results.plan, results.folder)
    lines = [(FIGURES[name].title, FIGURES[name].module.lacking(results)) for name in names]
    empty = [(title, why) for title, why in lines if why]
    assert empty, "nothing was counted in a made-up study"
    assert len(drawings) == len(reader.all("figure")) == len(names) - len(empty)
    text = reader.text().partition("Not available here")[2]
    assert all(title in text and " ".join(why.replace("`", "").split()) in text for title, why in empty)
    assert all(len(drawing["aria-label"]) > 20 for drawing in drawings)
    assert len(reader.all("caption")) == len(reader.all("table")) == 8
    assert all(attributes.get("scope") in ("col", "row") for attributes in reader.all("th"))


def test_the_page_is_one_file_and_every_link_leads_to_a_file(usual, written, drawn_study):
    assert [file.name for file in written.parent.iterdir()] == ["index.html"]
    links = {attributes["href"] for attributes in usual[0].all("a") if not attributes["href"].startswith("#")}
    assert links
    for link in links:
        assert link.startswith("../")
        assert (drawn_study / link.removeprefix("../")).exists(), link


ODD = [
    ({"failed": 5, "machine": {}}, ["Nothing was measured: every launch failed.", "facts were not recorded",
     "10 of 10 launches failed: dlrm-train ended with status 1 before it was ready"]),
    ({"leads": ["dlrm-train"], "antagonists": ["stream"], "launches": 1}, ["Too few launches for an answer",
     "the interval covers this launch only", "The only launch was measured."]),
    ({"leads": []}, ["There are no launches.", "No numbers"]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "said"), ODD)
def test_odd_studies_have_a_page(tmp_path, keys, said):
    text = words_of(make(tmp_path / "study", **keys))
    assert not [words for words in said if words not in text]
    assert "nan" not in text.lower().split()


def test_what_is_emulated_is_stamped_so(tmp_path):
    results = read_results(make(tmp_path / "study", leads=["a"], launches=3, platform="emulated"))
    reader = parsed(page(results, dict.fromkeys(FIGURES, "<svg></svg>")))
    assert "Emulated: a real kernel" in reader.text()
    assert "Measured:" not in reader.text()
    assert any("stamp other" in (attributes.get("class") or "") for attributes in reader.all("span"))


def test_a_figure_that_is_not_drawn_is_a_sentence(tmp_path):
    folder = make(tmp_path / "study", leads=["a"], launches=1)
    with pytest.raises(CastmatesError, match=r"heatmap\.page\.json: the figure\'s text is not there; run the"):
        write_page(read_results(folder), folder / "figures", folder / "report" / "index.html")


def test_a_script_that_cannot_read_the_study_ends_in_a_sentence(tmp_path):
    wrong = [str(SCRIPTS / "analyse.py"), "--results", str(tmp_path), "--study", str(tmp_path / "study.yaml")]
    failed = subprocess.run([sys.executable, *wrong], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.strip()
    assert "Traceback" not in failed.stderr


def changed_plan(folder, change):
    file = folder / "plan.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def test_every_design_is_listed_with_its_number_of_launches(tmp_path):
    folder = make(tmp_path / "study", leads=["a"], launches=3)
    text = words_of(folder)
    assert text.count("Design of") == text.count("Design of the launches (times in seconds)") == 1
    changed_plan(folder, lambda plan: plan["launches"][2]["design"].update(window=7.25))
    text = words_of(folder)
    assert text.index("Design of 2 launches of a (") < text.index("Design of 1 launch of a (") < text.index("7.25")
    assert text.count("Design of") == 2


def test_only_the_plans_launches_speak_of_versions_and_hosts(tmp_path):
    folder = make(tmp_path / "study", leads=["a"], launches=2)
    record(folder, "orphan-1111", 1, host="elsewhere", versions={"python": "2.7-orphan"})
    assert len(read_results(folder).records) == 2
    assert not {"2.7-orphan", "elsewhere"} & set(words_of(folder).replace(":", " ").split())
    record(folder, "a-0000abcd", 2, host="elsewhere")
    text = words_of(folder)
    assert "2 hosts (elsewhere: 1, synthetic-host: 1); their effects are pooled" in text
    assert "lies inside the study's margin" in text
    assert text.index("their effects are pooled") < text.rindex("Mixes in detail")
    (folder / "plan.json").unlink()
    assert len(read_results(folder).records) == 3


def test_the_cast_is_shown_and_escaped(tmp_path):
    folder = make(tmp_path / "study", leads=["a"], antagonists=["b", "c"])

    def change(content):
        content["titles"] = {"b": "The <b>second</b>", "a": "The first"}
        for launch in content["launches"]:
            launch["cohort"]["members"][1] |= {"command": ["sh", "-c", "<i>x</i> && y"], "environment": "tf",
                                               "cpus": [2, 3, 4, 8], "unit": "sweep"}  # fmt: skip
        content["launches"][0]["cohort"]["members"][1] |= {"cpus": [5], "role": "lead"}

    changed_plan(folder, change)
    results = read_results(folder)
    assert [row["workload"] for row in plan.cast(results.plan)] == ["b", "a", "c"]
    assert plan.cast(results.plan)[0] == {
        "workload": "b", "title": "The <b>second</b>", "roles": "lead, antagonist", "cpus": "5; 2-4,8",
        "command": "sh -c '<i>x</i> && y'", "unit": "sweep", "environment": "tf",
    }  # fmt: skip
    html = page(results, dict.fromkeys(FIGURES, "<svg></svg>"))
    assert "The &lt;b&gt;second&lt;/b&gt;" in html
    assert "&lt;i&gt;x&lt;/i&gt; &amp;&amp; y" in html
    text = parsed(html).text()
    assert text.index("Each launch starts a lead") < text.index("The cast") < text.index("The machine")
    assert "The first" in text


def test_a_plan_without_titles_or_launches_or_no_plan_at_all_still_has_a_page(tmp_path):
    folder = make(tmp_path / "study", leads=["a"], launches=1)
    changed_plan(folder, lambda plan: plan.update(titles={}))
    assert "The cast" in words_of(folder)
    changed_plan(folder, lambda plan: plan.update(launches=[]))
    assert "The cast" not in words_of(folder)
    (folder / "plan.json").unlink()
    text = words_of(folder)
    assert "The cast" not in text
    assert "Design of" not in text


def test_a_launch_that_never_got_ready_has_a_dash_for_its_launch_and_the_way_out(tmp_path):
    results = read_results(make(tmp_path / "study", leads=["a"], launches=2, failed=1))
    html = page(results, dict.fromkeys(FIGURES, "<svg></svg>"))
    launch = '<td class="n" data-value="nan">–</td>'
    assert html.count(f'{launch}\n    {launch}{launch}\n    <td class="n" data-value="61.0">61.0</td>') == 1
    assert html.count("<code>castmates sweep STUDY.yaml --retry</code>") == 2, "in the card and in the health panel"
    assert "measures it again." in parsed(html).text()


def edited(folder, table, change):
    """The same results with another table; `change` edits it."""
    file = folder / "tables" / f"{table}.parquet"
    rows = pd.read_parquet(file)
    change(rows)
    rows.to_parquet(file)
    return folder


def judged(verdict, control="A/A", lead="dlrm-train"):
    def change(controls):
        controls.loc[(controls["control"] == control) & (controls["lead"] == lead), "verdict"] = verdict

    return change


SEEN, MISSED, NOT_TRIED = "a known loss was seen", "a known loss was missed", "no known loss measured"


@pytest.mark.parametrize(
    ("change", "good", "bad"),
    [
        (judged("passes"), ["noise within the margin", SEEN], []),
        (judged("unstable"), [SEEN], ["not steady"]),
        (judged("unstable", "negative", "compute"), [SEEN], ["not steady"]),
        (judged("inconclusive"), [SEEN], ["noise may exceed the margin"]),
        (judged("too few launches"), [SEEN], ["too few launches to know the noise"]),
        (judged("no sensitivity shown here", "positive", "chase"), ["noise within the margin"], [MISSED]),
        (judged("no data", "positive", "chase"), ["noise within the margin"], [NOT_TRIED]),
    ],
)
def test_the_stamps_are_on_every_page(tmp_path, change, good, bad):
    results = read_results(edited(make(tmp_path / "study"), "controls", change))
    html = page(results, dict.fromkeys(FIGURES, "<svg></svg>"))
    reader = parsed(html)
    for expected, state in ((good, "good"), (bad, "bad")):
        shown = re.findall(rf'<span class="stamp {state}" title="[^"]+">([^<]*)</span>', html)
        assert shown == expected
    words = ["measured", *(pill.word for pill in stamps(results))]
    assert f'@page {{ @top-right {{ content: "{" · ".join(words)}"' in html, "on every sheet of paper"
    sentence = f"This study is stamped: {', '.join(words[1:])}."
    assert reader.text().count(sentence) == 1, "the foot; no table, no figure"
    assert caveat(results) == " · ".join(word for word in bad if word != NOT_TRIED)


def test_the_health_panel_counts_rejections_repeats_and_failures(tmp_path):
    def change(windows):
        first = windows["window"].eq(1) & windows["launch"].eq(2)
        windows["valid"], windows["reason_kinds"] = ~first, first.map({True: "steal; swapping", False: ""})
        windows.loc[windows["launch"].eq(3) & windows["round"].eq(3), "round"] = 4

    folder = edited(make(tmp_path / "study", failed=1), "windows", change)
    results = read_results(folder)
    panel = dict(health.summary(results))
    assert panel["Spare rounds"] == "2 of 8 spare rounds used, in 2 of 8 launches."
    assert panel["Launches"].startswith("2 of 10 launches failed: dlrm-train ended with status 1")
    assert (
        panel["Settle time"]
        == "0.30 s waited after a change of scene; rates were steady after 0.11 s, stream most often the last."
    )
    assert panel["Carry-over"] == (
        "From the scene before: none seen for dlrm-train (±0.6 %) and resnet-infer (±0.6 %)."
    )
    rows = health.rejections(results.windows)
    assert sum(row["rejected"] for row in rows) == 2
    assert sum(row["kept"] + row["rejected"] for row in rows) == len(results.windows)
    assert {row["reasons"] for row in rows} - {"–"} <= {"steal (1), swapping (1)", "steal (2), swapping (2)"}
    text = words_of(folder)
    assert text.rindex("Can you trust this?") < text.index("Windows by kind of scene")


def test_a_window_of_several_members_is_counted_once():
    rows = [{"cohort": "c", "launch": 1, "window": 1, "kind": "corun", "valid": False, "reason_kinds": "steal"}] * 2
    assert health.rejections(pd.DataFrame(rows)) == [
        {"kind": "corun", "kept": 0, "rejected": 1, "share": 100.0, "reasons": "steal (1)"}
    ]


def test_carry_over_that_was_seen_is_told_in_the_verdict(tmp_path):
    def change(carryover):
        here = carryover["member"].isin(["dlrm-train@0", "stream@1"])
        carryover.loc[here, ["change_pct", "change_low", "change_high", "verdict"]] = -2.0, -2.9, -1.1, "seen"
        carryover.loc[carryover["member"] == "stream@1", "change_pct"] = -9.0  # larger, and nobody's question

    folder = edited(make(tmp_path / "study"), "carryover", change)
    text = words_of(folder)
    said = (
        "seen for dlrm-train (−2.0 % [−2.9, −1.1] ); none seen for resnet-infer (±0.6 %); "
        "seen for the antagonist stream (−9.0 % [−2.9, −1.1] )"
    )
    assert text.count(said) == 1, "in the health panel"
    assert "Freezing leaves a trace" in text, "on the first screen"
    assert re.search(
        r"dlrm-train.{0,16} is 2\.0 % \[1\.1, 2\.9\] slower right after it was frozen, in 60 % of its slices", text
    )


def test_a_biased_effect_is_flagged_wherever_its_number_stands(tmp_path):
    def change(effects):
        here = (effects["antagonists"] == "stream") & (effects["baseline"] == "alone")
        here &= (effects["role"] == "lead") & (effects["lead"] == "dlrm-train")
        effects.loc[here, ["rejection_rate", "baseline_rejection_rate"]] = 0.2, 0.0
        effects.loc[here, "possibly_biased"] = True

    folder = edited(make(tmp_path / "study"), "effects", change)
    text = words_of(folder)
    assert "hence possibly biased: dlrm-train in dlrm-train+stream against alone." in text
    assert text.count("perhaps biased by what was thrown away") == 1, "in its row of the first screen"
    assert "20.0 / 0.0 †" in text
    assert "† Possibly biased" in text
    figure, _ = FIGURES["heatmap"].module.draw(read_results(folder))
    cells = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert sum(cell.endswith("†") for cell in cells) == 1
    assert any("†: possibly biased" in " ".join(text.get_text().split()) for text in figure.texts)
    assert "†" not in words_of(make(tmp_path / "clean"))


def test_sentences_of_the_health_panel():
    one = {"member": "x@0", "mix": "x+a", "partition": "unmanaged", "baseline": "alone", "possibly_biased": False}
    rows = [one | {"rejection_rate": here, "baseline_rejection_rate": 0.02} for here in (0.0, 0.061, float("nan"))]
    good = Settled(seconds=0.3, steady_after=0.1, slowest="x@0", asked=0.3)
    never = Settled(seconds=2.0, slowest="a@1", unsteady=True, asked=0.3)
    raised = {
        n: Settled(seconds=waited, steady_after=0.5, asked=0.3) for n, waited in ((1, 0.6234), (2, 0.6234), (3, 0.3))
    }
    of = {
        "no flag, largest excess": health.biased_sentence(rows),
        "never more often": health.biased_sentence(rows[:1]),
        "never steady": health.settle_sentence({("c", 1): good, ("c", 2): never, ("c", 3): good, ("d", 1): never}),
        "most raised it": health.settle_sentence({("c", number): each for number, each in raised.items()}),
    }
    assert_as_before("health", of)


def test_old_records_without_a_settle_time_leave_its_columns_out(tmp_path):
    folder = make(tmp_path / "study", leads=["a"], launches=2)
    assert "Steady after (s)" in words_of(folder)
    for launch in (1, 2):
        record(folder, "a-0000abcd", launch)
    text = words_of(folder)
    assert "Steady after (s)" not in text
    assert "Settle time" not in text


def test_the_machine_shows_known_quirks_and_runs_nothing_of_them(tmp_path):
    quirk = {"name": "x", "title": "Traffic <b>may</b> be wrong (errata X1)", "happens": "It counts too much."}
    quirk |= {"do": "Compare it.", "sources": ["https://example.org/x"]}
    text = words_of(make(tmp_path / "study", machine={**MACHINE, "quirks": [quirk]}))
    assert "What is known to go wrong on this processor and kernel" in text
    assert "Traffic <b>may</b> be wrong (errata X1)" in text
    assert "It counts too much. Compare it." in text
    assert "Sources: https://example.org/x." in text


def test_of_very_many_launches_those_that_failed_or_lost_most_are_listed(tmp_path, monkeypatch):
    folder = make(tmp_path, launches=9)
    launches = pd.read_parquet(folder / "tables/launches.parquet")
    launches["windows_rejected"] = range(len(launches))
    launches.loc[2, "status"] = "failed"
    launches.to_parquet(folder / "tables/launches.parquet")
    monkeypatch.setattr("castmates.report.page.page.LISTED", 3)
    html = page(read_results(folder), dict.fromkeys(FIGURES, "<svg></svg>"))
    (table,) = re.findall(r"<caption>The 3 of \d+ launches that failed or lost most.*?</table>", html, re.DOTALL)
    assert len(re.findall("<tr><th", table)) == 3 + 1  # with the head
    assert 'class="failed"' in table
    assert table.count(f">{len(launches) - 1}</td></tr>") == table.count(f">{len(launches) - 2}</td></tr>") == 1
