"""The CSV of a table is, to the letter, what pandas writes."""

import numpy as np
import pandas as pd
from hypothesis import example, given
from hypothesis import strategies as st

from castmates.results import tables

ROW = st.tuples(
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8),
    st.floats() | st.integers(-(2**70), 2**70).map(float),
    st.integers(-(2**63), 2**63 - 1) | st.none(),
    st.booleans(),
)


def table_of(rows):
    names, numbers, whole, flags = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pd.DataFrame({
        "name": pd.Series(names, dtype="str"), "rate": np.array(numbers, dtype=float),
        "ways": pd.array(list(whole), "Int64"), "valid": np.array(flags, dtype=bool),
    })  # fmt: skip


@given(st.lists(ROW, max_size=30))
@example([("a,b", 0.1, 1, True), ('say "no"', 1e-4, None, False), ("", 1e15, 0, True), ("a\nb", 1e16, 0, True)])
@example(
    [("é", 123456789012345.6, 7, True), ("x", 9.9e-5, -1, False), ("", float("inf"), 3, True), ("", -0.0, 1, True)]
)
def test_it_is_what_pandas_writes(tmp_path_factory, rows):
    file = tmp_path_factory.getbasetemp() / "table.csv"
    table = table_of(rows)
    tables.write_csv(table, file)
    assert file.read_bytes().decode() == table.to_csv(index=False)


def test_numbers_of_every_size_are_written_in_full(tmp_path):
    powers = [sign * digits * 10.0**power for power in range(-30, 30) for digits in (1, 1.5, 1 / 3) for sign in (1, -1)]
    table = pd.DataFrame({"a": powers, "b": [1 / one for one in powers]})
    tables.write_csv(table, tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == table.to_csv(index=False)


def test_many_rows_are_written_in_portions(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 7)
    table = table_of([(f"n{number}", number / 7, number, bool(number % 2)) for number in range(50)])
    tables.write_csv(table, tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == table.to_csv(index=False)
