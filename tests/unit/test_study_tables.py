"""Tables that an earlier version wrote, or that are none: which command makes them anew."""

import re
from pathlib import Path

import pandas as pd
import pytest

from castmates.cli.sweep import ANALYSES
from castmates.errors import CastmatesError
from castmates.results.columns.study import SYSTEM, frame
from castmates.results.folder import StudyFolder
from castmates.results.tables import Tables

ROW = {name: "x" if kind == "str" else False if kind == "bool" else 1 for name, kind in SYSTEM.items()}


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "tables").mkdir()
    return Tables(StudyFolder(tmp_path), Path("config/studies/mine.yaml"))


def wrote(tables, table):
    table.to_parquet(tables.folder.table_file("system"))
    return tables


def test_a_table_of_an_earlier_version_names_what_it_lacks_and_the_command(tables):
    earlier = frame([ROW], SYSTEM).drop(columns=["platform", "possibly_biased"])
    with pytest.raises(CastmatesError) as said:
        wrote(tables, earlier).read(SYSTEM)
    assert "system.parquet: an earlier version wrote this table, without platform, possibly_biased; run " in str(
        said.value
    )
    command = re.findall("`(.*?)`", str(said.value))[0]
    assert command == "castmates sweep config/studies/mine.yaml --analyse-again"
    rules = (Path(__file__).parents[2] / "workflow" / "rules" / "analyse.smk").read_text()
    assert re.findall(r"rule (gather_\w+|estimate_\w+|analyse):", rules) == list(ANALYSES), "all that make tables"


@pytest.mark.parametrize("spoil", [b"", b"PAR1", b"text"])
def test_what_is_no_table_is_a_sentence_with_the_same_command(tables, spoil):
    (tables.folder.table_file("system")).write_bytes(spoil)
    with pytest.raises(CastmatesError, match=r"; run `castmates sweep .* --analyse-again`\.$") as said:
        tables.read(SYSTEM)
    assert "\n" not in str(said.value)


def test_values_of_another_kind_are_a_sentence_too(tables):
    odd = frame([ROW], SYSTEM).astype({"launches": object}).assign(launches="many")
    with pytest.raises(CastmatesError, match="no table of this version"):
        wrote(tables, odd).read(SYSTEM)


def test_further_columns_are_left_out(tables):
    with pytest.raises(CastmatesError, match=r"not there; run `castmates sweep config/studies/mine.yaml`\.$"):
        tables.read(SYSTEM)
    found = wrote(tables, frame([ROW], SYSTEM).assign(new=1)).read(SYSTEM)
    pd.testing.assert_frame_equal(found, frame([ROW], SYSTEM))
    without_a_file = Tables(tables.folder, None)
    assert without_a_file.make == "run `castmates sweep STUDY.yaml`"
