"""A launch's tables are written without pandas, and are to the byte what pandas would write."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.results.columns.launch import LAUNCH_TABLES
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.study import frame

NS = 2**60 + 1  # more than a float can distinguish from its neighbours
VALUES = {
    "str": st.text(st.characters(exclude_categories=["Cs"])) | st.none(),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "Int64": st.integers(-(2**63), 2**63 - 1) | st.none(),
    "float64": st.floats(allow_nan=True) | st.integers(-(2**53), 2**53),
    "bool": st.booleans(),
}


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.fixed_dictionaries(VALUES), max_size=20))
def test_files_are_to_the_byte_what_pandas_writes(tmp_path_factory, rows):
    folder, columns = tmp_path_factory.mktemp("tables"), {kind: kind for kind in VALUES}
    assert same(rows, columns, folder)


def same(rows, columns, folder):
    write_rows(rows, columns, folder / "ours")
    frame(rows, columns).to_parquet(folder / "theirs", index=False)
    return (folder / "ours").read_bytes() == (folder / "theirs").read_bytes()


@pytest.mark.parametrize("name", LAUNCH_TABLES)
def test_every_table_of_the_contract_can_be_written(tmp_path, name):
    columns = LAUNCH_TABLES[name]
    assert set(columns.values()) <= set(VALUES)
    assert same([], columns, tmp_path)


def test_other_keys_are_left_out_and_what_a_row_lacks_is_missing(tmp_path):
    rows = [{"first_ns": NS, "note": "x", "more": 1}, {"value": 2.5}]
    assert same(rows, {"first_ns": "Int64", "note": "str", "value": "float64"}, tmp_path)


@pytest.mark.parametrize("kind", ["int64", "bool"])
def test_a_column_without_gaps_takes_none(tmp_path, kind):
    with pytest.raises(ValueError, match="lacks a value"):
        write_rows([{"a": 1}, {}], {"a": kind}, tmp_path / "ours")
