"""Reads and writes the tables of a study's analysis; where one cannot be used, the error names the remedy."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from castmates.errors import CastmatesError
from castmates.files import make_folder, replace, writing
from castmates.results.columns.contract import Table
from castmates.results.columns.registry import TABLES
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from castmates.results.traces import traces_there
from castmates.study.capabilities import CLASSES, TRACES, Capability

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from castmates.study.spec import Plan


@dataclass(frozen=True)
class Tables:
    """The tables of a study."""

    folder: StudyFolder
    study_file: Path | None = None

    @property
    def make(self) -> str:
        """The command that makes what is missing."""
        return f"run `castmates sweep {self.study_file or 'STUDY.yaml'}`"

    @property
    def again(self) -> str:
        """The command that makes them anew from what is measured, as a sweep does not where there is a table."""
        study = self.study_file or "STUDY.yaml"
        return f"run `castmates sweep {study} --analyse-again`"

    def read(self, columns: Table) -> "pd.DataFrame":
        """A table of the study."""
        import pandas as pd

        file = self.folder.table_file(columns.name)
        try:
            # Names as a few and their places: none is made twice.
            table = pd.read_parquet(file, read_dictionary=[name for name, kind in columns.items() if kind == "str"])
        except FileNotFoundError:
            raise CastmatesError(f"{file}: the table is not there; {self.make}.") from None
        except (OSError, ValueError) as problem:
            why = str(problem).splitlines()[0].rstrip(".")
            raise CastmatesError(f"{file}: this is no table ({why}); {self.again}.") from None
        if table.empty:
            return frame([], columns)
        if lacking := [column for column in columns if column not in table.columns]:
            raise CastmatesError(
                f"{file}: an earlier version wrote this table, without {', '.join(lacking)}; {self.again}: what is "
                "measured is analysed again, and measured again only where this version cannot read it."
            )
        try:
            return table[list(columns)].astype(dict(columns))
        except ValueError as problem:
            raise CastmatesError(f"{file}: this is no table of this version ({problem}); {self.again}.") from None


def has(capability: Capability | None, plan: "Plan", folder: StudyFolder) -> bool:
    """Whether a study asks for something, or has what is made on demand, or what other nodes left."""
    if capability is None or capability.asked(plan):
        return True
    return (capability is TRACES and bool(traces_there(folder))) or (
        capability is CLASSES and bool(folder.node_files())
    )


def tables_of(plan: "Plan", folder: StudyFolder) -> list[str]:
    """The names of the tables that a study has."""
    return [name for name, table in TABLES.items() if table.rule and has(table.asked, plan, folder)]


@contextmanager
def written_together(output: Path, rule: str) -> Iterator[Path]:
    """A folder for the tables that a rule writes: they come into `output` together."""
    make_folder(output)
    made = output / f".new-{rule}"
    shutil.rmtree(made, ignore_errors=True)  # of one that was killed
    made.mkdir()
    try:
        yield made
        for file in sorted(made.iterdir()):
            file.replace(output / file.name)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def remove_left_over(plan: "Plan", folder: StudyFolder, output: Path) -> None:
    """Remove the tables of any rule from before the study ceased to ask for them."""
    for name in {name for name, table in TABLES.items() if table.rule}.difference(tables_of(plan, folder)):
        for suffix in ("csv", "parquet", "json"):
            (output / f"{name}.{suffix}").unlink(missing_ok=True)


def write_table(table: "pd.DataFrame", stem: Path) -> None:
    """Write STEM.csv and STEM.parquet, each whole or not at all."""
    # Floats in full: reading them back gives the same bits.
    with writing(stem):
        replace(stem.with_suffix(".csv"), partial(write_csv, table))
        replace(stem.with_suffix(".parquet"), lambda file: table.to_parquet(file, index=False, compression="zstd"))


# A table as CSV, in the very text that pandas writes, column by column instead of row by row: millions of rows.

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
