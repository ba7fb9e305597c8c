"""What toplev wrote becomes rows of our table; its files here are synthetic."""

import math
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.counters.topdown.toplev import read_toplev, rows
from castmates.errors import CastmatesError
from castmates.results.columns.launch import TOPDOWN
from castmates.study.counter_keys import remainders
from tests.unit.counters.perf_prints import PRINTS, read


@pytest.mark.parametrize(("name", "where"), [("toplev.csv", "C0"), ("toplev-old.csv", "S0-C0")])
def test_both_shapes_are_read_and_add_up(name, where):
    found = read_toplev(read(f"synthetic/{name}"))
    assert len(found) == 24
    assert {one.where for one in found} == {where}
    assert {one.running for one in found} == {0.985}
    for second in (1.000791821, 2.000792821):
        told = {one.category.name: one.value for one in found if one.t_s == second}
        assert all(abs(rest) < 0.0003 for rest in remainders(told).values())
        assert len(remainders(told)) == 5
    assert {one.below_threshold for one in found if one.value < 0.14} == {True}


def test_names_of_before_and_areas_with_a_prefix():
    text = (
        "Frontend_Bound.FE_Latency,12.11,% Slots,,,0,100.0,\nBE/Mem Backend_Bound.Mem_Bound,44.6,% Slots,,,0,100,<==\n"
    )
    found = {one.category.name: (one.value, one.t_s, one.where) for one in read_toplev(text)}
    assert found == {"Fetch_Latency": (0.1211, None, ""), "Memory_Bound": (0.446, None, "")}


def test_the_rows_are_those_of_the_table():
    made = rows(read_toplev(read("synthetic/toplev.csv")), "s", "lead@0", "alone", "measured")
    assert list(made[0]) == list(TOPDOWN)
    assert {row["window"] for row in made} == {1, 2}
    assert {(row["source"], row["status"]) for row in made} == {("toplev", "scaled")}


def test_what_cannot_be_a_share_of_slots_has_no_value_and_says_so():
    (row,) = rows(read_toplev("Frontend_Bound,-45.8,% Slots,,,0,100.0,\n"), "", "", "", "")
    assert math.isnan(row["value"])
    assert (row["status"], row["note"]) == ("not counted", "toplev wrote -45.8%, which is no share of slots")


@pytest.mark.parametrize(
    ("text", "word"),
    [("", "no Top-Down"), ("a,b\n", "line 1"), ("1.0,C0,Frontend_Bound,many,% Slots,,,,\n", "'1.0,C0"),
     ("C0-T0,MUX,98.5,%,,,0,100,\n", "no Top-Down")],
)  # fmt: skip
def test_garbage_is_refused_in_a_sentence(text, word):
    with pytest.raises(CastmatesError, match=word):
        read_toplev(text)


PLAYED = """
import sys
words = sys.argv
assert words[1:5] == ["-x,", "-l1", "-v", "--no-desc"] and words[7:] == ["--", "true"], words
open(words[words.index("-o") + 1], "w").write(open({print!r}).read())
"""


def called(*words):
    return CliRunner().invoke(app, ["internals", *map(str, words)])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_writes_the_table(tmp_path, suffix):
    output = tmp_path / f"table.{suffix}"
    done = called("import-toplev", PRINTS / "synthetic" / "toplev.csv", "--output", output, "--member", "lead@0")
    assert done.exit_code == 0, done.output
    table = pd.read_parquet(output) if suffix == "parquet" else pd.read_csv(output)
    assert list(table.columns) == list(TOPDOWN)
    assert len(table) == 24


def test_toplev_is_run_as_a_program_of_its_own(tmp_path):
    toplev = tmp_path / "toplev.py"
    toplev.write_text(PLAYED.format(print=str(PRINTS / "synthetic/toplev.csv")))
    output = tmp_path / "table.csv"
    done = called("record-toplev", "--toplev", toplev, "--level", 1, "--output", output, "--", "true")
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv(output)) == 24
    toplev.write_text("import sys\nsys.exit('no counters here')\n")
    for words, told in (([toplev], "no counters here"), ([tmp_path / "nonsuch"], "there is no toplev")):
        failed = called(
            "record-toplev", "--toplev", *words, "--output", output, "--python", sys.executable, "--", "true"
        )
        assert isinstance(failed.exception, CastmatesError)
        assert told in str(failed.exception)
