"""Tables, what figures draw, and page of the frozen study are as they were: numbers to 1e-9, texts to the letter."""

import contextlib
import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.english import number
from castmates.report.quantity import Quantity
from tests.golden.report import PAGE, STUDY, TABLES, alike, content, differences, kept, kept_table, left_out, make
from tests.unit.plain_words import lost_sentences, strange_words

ADVICE = """
Where this is wanted, `python -m tests.golden` writes the golden files anew: look at `git diff`, and say why."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def made(home):
    return make(home / "results" / "golden")


def columns(text):
    """A table column by column."""
    rows = list(csv.DictReader(text.splitlines()))
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else [])}


@pytest.mark.parametrize("name", sorted(file.stem for file in TABLES.glob("*.csv")))
def test_the_tables_hold_the_golden_numbers(made, name):
    golden = columns((TABLES / f"{name}.csv").read_text())
    found = list(differences(golden, columns(made[0][name]), name))
    assert not found, "\n".join(found[:20]) + ADVICE


def test_no_table_is_made_that_the_study_does_not_ask_for(made):
    assert sorted(made[0]) == sorted(file.stem for file in TABLES.glob("*.csv"))


def test_the_page_says_the_golden_words(made):
    golden, page = json.loads(PAGE.read_text()), made[1]
    found = [*left_out(golden, page)]
    for part in ("figures", "tables"):
        found += differences(golden[part], page[part], part)
    assert not found, "\n".join(found[:20]) + ADVICE


def test_the_page_is_plain(made):
    """As it is made now, whatever the golden file has."""
    text = json.dumps(made[1], ensure_ascii=False)
    assert not [*lost_sentences(text), *strange_words(text)]


@pytest.fixture(scope="module")
def said(made, home):
    """What the page and three commands say of each pair, and the tables that they say it of."""
    tables, page = made
    (home / "golden.yaml").write_text(STUDY.read_text())
    (home / "config").mkdir()
    for part in ("config/workloads", "envs"):
        (home / part).symlink_to(Path(__file__).parents[2] / part)
    texts = {"page": [text for name in ("recommendation", "to-try") for text in page["sections"].get(name, [])]}
    with contextlib.chdir(home):
        for name, command in (("show", ["show"]), ("recommend", ["show", "--partitions"]), ("findings", ["advice"])):
            done = CliRunner(env={"COLUMNS": "10000"}).invoke(app, [*command, "golden.yaml"])
            assert done.exit_code == 0, done.output
            texts[name] = done.output.splitlines()
    texts["show"] = [" ".join(part.split()) for part in "\n".join(texts["show"]).split("\n\n")]
    return texts, {name: pd.read_csv(io.StringIO(tables[name])) for name in ("effects", "recommendations")}


def printed(row):
    return str(Quantity(row.loss_pct, row.loss_low, row.loss_high, "%"))


def test_page_and_commands_advise_one_mask_and_say_what_all_pay_for_it(said):
    """Judged by the table of effects alone: it has what each member loses, with a partition and without."""
    texts, tables = said
    effects, limit = tables["effects"], 10.0
    advised = 0
    for advice in tables["recommendations"].fillna({"partition": ""}).itertuples():
        own = effects[effects["mix"] == advice.mix]
        loss = own[(own["role"] == "lead") & (own["baseline"] == "alone")].set_index("partition")
        gain = own[(own["role"] == "lead") & (own["baseline"] == "unmanaged")].set_index("partition")
        price = own[own["role"] == "antagonist"]
        needed = loss.at["unmanaged", "verdict"] == "loss" and loss.at["unmanaged", "loss_low"] > limit
        assert (advice.verdict in ("met", "not met")) == needed, advice.mix
        of_pair = [f"{advice.lead} beside {advice.antagonists}:", f"{advice.mix})"]
        lines = {
            place: [line for line in all_ if any(words in line for words in of_pair)] for place, all_ in texts.items()
        }
        assert not any("\N{MINUS SIGN}" in line and "faster" in line for every in lines.values() for line in every)
        if advice.verdict != "met":
            assert not lines["findings"], "nothing is advised that keeps no limit, or is not needed"
            continue
        advised += 1
        assert gain.at[advice.partition, "verdict"] == "gain"
        assert loss.at[advice.partition, "loss_high"] <= limit
        pays = [printed(row) for row in price[price["partition"].isin([advice.partition, "unmanaged"])].itertuples()]
        times = f"{number(1 / gain.at[advice.partition, 'slowdown'], 2)} \N{MULTIPLICATION SIGN} as fast"
        for place, every in lines.items():
            whole = " ".join(every)
            assert {name for name in loss.index if f"{name}," in whole} == {advice.partition}, (place, whole)
            for part in (printed(loss.loc[advice.partition]), printed(loss.loc["unmanaged"]), times, *pays):
                assert part in whole, (place, part)
    assert advised


def test_the_golden_page_is_worth_comparing():
    page = json.loads(PAGE.read_text())
    assert "with 6 of the 8 cache ways" in " ".join(page["headings"]), "the headline"
    for part, words in (
        ("why", "give back"),
        ("recommendation", "keep the loss within"),
        ("recommendation", "no lead mask is shown"),
    ):
        assert any(words in sentence for sentence in page["sections"][part]), (part, words)
    assert len(page["tables"]["Table of effects"]["Loss (%) (value)"]) > 20
    assert len(page["figures"]) >= 4


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        ({"a": ["1.0000000001"]}, False),
        ({"a": ["1.00000001"]}, True),
        ({"a": ["1", "2"]}, True),
        ({"b": ["1"]}, True),
        ({"a": ["1"], "b": ["new"]}, False),
        ({"a": ["one"]}, True),
    ],
)
def test_what_differs_is_seen_and_what_is_new_is_not(changed, seen):
    assert bool(list(differences({"a": ["1"]}, changed))) is seen
    assert alike("nan", "nan")


def test_renewing_keeps_what_is_alike_and_nothing_else():
    golden = {"a": ["1", "2", "nan"], "gone": "x"}
    found = {"a": ["1.0000000000001", "2.1", "nan"], "new": "3"}
    assert kept(golden, found) == {"a": ["1", "2.1", "nan"], "new": "3"}
    table = 'name,x\n"a, b",1.5\nc,2.5\n'
    assert kept_table(table, table.replace("1.5", "1.5000000000001").replace("2.5", "2.6")) == table.replace(
        "2.5", "2.6"
    )
    assert kept_table(table, "name,x,y\na,1.5,0\nc,2.5,1\n") == "name,x,y\na,1.5,0\nc,2.5,1\n"
    assert kept_table(table, "name,x\na,2\n") == "name,x\na,2\n"
    for file in TABLES.glob("*.csv"):
        assert kept_table(file.read_text(), file.read_text()) == file.read_text()


def test_a_sentence_that_is_gone_or_moved_is_seen():
    golden = {"headings": ["A", "B"], "sections": {"verdict": ["one", "two"]}}
    added = {"headings": ["A", "X", "B"], "sections": {"verdict": ["zero", "one", "two"], "more": ["three"]}}
    assert list(left_out(golden, golden)) == list(left_out(golden, added)) == []
    assert list(left_out(golden, added | {"headings": ["B", "A"]})) == ["headings: 'B' is missing"]
    assert list(left_out(golden, added | {"sections": {"verdict": ["one"]}})) == ["verdict: 'two' is missing"]


def test_a_table_is_read_cell_by_cell():
    html = """<section id="s"><p>A [1, 2]</p></section><div role="region" aria-label="T"><table>
      <thead><tr><th>A</th><th>B</th></tr></thead>
      <tbody><tr><th>x</th><td data-value="2.5">2.50</td></tr></tbody></table></div>"""
    page = content(html)
    assert page["tables"] == {"T": {"A": ["x"], "B": ["2.50"], "B (value)": ["2.5"]}}
    assert page["sections"] == {"s": ["A [1, 2]"]}
