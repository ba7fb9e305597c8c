"""A table as CSV, in the very text that pandas writes, column by column instead of row by row: millions of rows."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ROWS = 100_000  # at a time
PLAIN = (1e-4, 1e10)  # the numbers between are written without an exponent, by Arrow as by Python


def write_csv(table: "pd.DataFrame", file: Path) -> None:
    """Write the table; numbers have as many digits as it takes to read the same bits back."""
    with file.open("wb") as out:
        table[:0].to_csv(out, index=False)
        for begin in range(0, len(table), ROWS):
            out.write(_lines(table.iloc[begin : begin + ROWS]))


def _lines(table: "pd.DataFrame") -> "pa.Buffer":
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pa.Table.from_pandas(table, preserve_index=False)
    texts = [_texts(column.combine_chunks()) for column in whole.columns]
    end = _word("\n")
    lines = pc.binary_join_element_wise(*texts, _word(","), null_handling="replace", null_replacement="")
    lines = pc.binary_join_element_wise(lines, end, _word(""))
    _, _, data = lines.buffers()  # the texts lie one behind the other
    return data


def _texts(column: "pa.Array") -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(column.type):
        return pc.if_else(column, _word("True"), _word("False"))
    if pa.types.is_floating(column.type):
        return _numbers(column)
    texts = pc.cast(column, pa.large_string())
    if pa.types.is_integer(column.type):
        return texts
    quoted = pc.binary_join_element_wise(_word('"'), pc.replace_substring(texts, '"', '""'), _word('"'), _word(""))
    return pc.if_else(pc.match_substring_regex(texts, '[,"\r\n]'), quoted, texts)


def _numbers(column: "pa.Array") -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.cast(column, pa.float64())
    column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    texts = pc.cast(column, pa.large_string())
    texts = pc.if_else(
        pc.match_substring(texts, "."),
        texts,
        pc.binary_join_element_wise(texts, _word(".0"), _word("")),
    )
    size = pc.abs(column)
    odd = pc.or_(pc.and_(pc.less(size, PLAIN[0]), pc.not_equal(size, 0.0)), pc.greater_equal(size, PLAIN[1]))
    odd = pc.fill_null(odd, False)
    written = pa.array(map(repr, column.filter(odd).to_pylist()), pa.large_string())
    return pc.replace_with_mask(texts, odd, written)


def _word(text: str) -> "pa.Scalar":
    import pyarrow as pa

    return pa.scalar(text, pa.large_string())
